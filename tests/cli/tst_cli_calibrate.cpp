/// `cleave-cli calibrate` with real ranks: plans accept its profile, and a failure leaves no file. Figures are only
/// checked to be positive, because a test does not know how fast a machine is.
#include "tests/support/cli_process.h"

#include <QDir>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>

using namespace cleave::test;

namespace {

const QString kModel = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");
constexpr int kPatience = 120'000;

QByteArray contentOf(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QStringList entriesOf(const QString& folder) {
  return QDir(folder).entryList(QDir::Files | QDir::Hidden | QDir::NoDotAndDotDot);
}

QString complaintAbout(const QJsonObject& profile) {
  if (profile["schema"] != "cleave.device/1") return "schema";
  const auto rates = profile["flops_per_second"].toObject(), link = profile["link"].toObject();
  for (const QJsonValue& number :
       {rates["half"], rates["float32"], rates["float64"], profile["memory_bytes_per_second"], profile["memory_bytes"],
        link["bytes_per_second"], link["latency_seconds"]}) {
    if (!(number.toDouble() > 0)) return "a figure that is not positive";
  }
  if (!profile["title"].toString().startsWith("2 ranks on ")) return profile["title"].toString();
  return profile["sources"].toArray().size() == 3 ? QString() : "sources";
}

/// The child processes of a process.
QList<pid_t> childrenOf(qint64 parent) {
  QList<pid_t> found;
  for (const QString& name : QDir("/proc").entryList(QDir::Dirs)) {
    // "4711 (cleave-rank) S 4700 ..."
    const QByteArray stat = contentOf("/proc/" + name + "/stat");
    const auto fields = stat.mid(stat.lastIndexOf(')') + 2).split(' ');
    if (fields.value(1).toLongLong() == parent && parent > 0) found << static_cast<pid_t>(name.toInt());
  }
  return found;
}

/// A calibration that is measuring.
class Calibrating {
 public:
  explicit Calibrating(const QString& output) {
    process.start(CLEAVE_BIN_DIR "/cleave-cli", {"calibrate", "--backend", "gloo", "--output", output});
    QElapsedTimer timer;
    timer.start();
    while (!said.contains("running") && process.state() != QProcess::NotRunning && timer.elapsed() < kPatience) {
      process.waitForReadyRead(100);
      said += process.readAllStandardError();
    }
  }
  ~Calibrating() {
    process.kill();
    process.waitForFinished();
  }
  bool end() {
    const bool hasEnded = process.waitForFinished(kPatience);
    said += process.readAllStandardError();
    return hasEnded && process.exitStatus() == QProcess::NormalExit;
  }
  QProcess process;
  QByteArray said;
};

}  // namespace

class TestCliCalibrate : public QObject {
  Q_OBJECT
 private slots:
  /// The profile replaces an existing file.
  void plansAreMadeWithTheProfile() {
    QTemporaryDir folder;
    const QString file = folder.filePath("my 'own'.json");
    QFile old(file);
    QVERIFY(old.open(QIODevice::WriteOnly) && old.write("old") == 3);
    old.close();
    const Finished done = cli({"calibrate", "--ranks", "2", "--backend", "gloo", "--output", file});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    const QJsonObject profile = QJsonDocument::fromJson(contentOf(file)).object();
    QCOMPARE(complaintAbout(profile), QString());
    QCOMPARE(entriesOf(folder.path()).size(), 1);
    QVERIFY(!QString::fromUtf8(contentOf(file)).contains(folder.path()));
    // The command that it prints works in a shell.
    const auto named = QRegularExpression("^  cleave-cli (plan MODEL .*)$", QRegularExpression::MultilineOption)
                           .match(QString::fromUtf8(done.out));
    QVERIFY2(named.hasMatch(), done.out.constData());
    QProcess shell;
    shell.start("bash", {"-c", CLEAVE_BIN_DIR "/cleave-cli " + named.captured(1).replace("MODEL", kModel)});
    QVERIFY(shell.waitForFinished(kPatience));
    QVERIFY2(shell.exitCode() == 0, shell.readAllStandardError().constData());
    QVERIFY(shell.readAllStandardOutput().contains("2 ranks"));
  }

  void standardOutputHasTheProfileAlone() {
    const Finished done = cli({"calibrate", "--backend", "gloo", "--output", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QCOMPARE(complaintAbout(QJsonDocument::fromJson(done.out).object()), QString());
  }

  void withoutAnOutputTheProfileIsNotSaved() {
    const Finished done = cli({"calibrate", "--backend", "gloo"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("Not saved. --output FILE writes this device profile"), done.out.constData());
    for (const char* phrase : {"products in float32", "all_reduce", "16 MiB", "Largest error"})
      QVERIFY2(done.out.contains(phrase), done.out.constData());
  }

  void wrongUseIsRefusedBeforeAnythingRuns_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("phrase");
    const auto row = [](const char* name, QStringList arguments, const char* phrase) {
      QTest::newRow(name) << arguments << QByteArray(phrase);
    };
    row("one rank", {"--ranks", "1"}, "Use at least 2 ranks");
    row("no rank", {"--ranks", "0"}, "0 ranks are not possible");
    row("too many", {"--ranks", "1025"}, "Use 2 to 1024 ranks");
    row("no number", {"--ranks", "two"}, "the option does not take this value");
    row("another backend", {"--backend", "mpi"}, "write auto, gloo or nccl");
    row("an argument", {"model"}, "cleave-cli --help");
  }
  void wrongUseIsRefusedBeforeAnythingRuns() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, phrase);
    QTemporaryDir folder;
    const QStringList output{"--output", folder.filePath("out.json")};
    const Finished done = cli(QStringList{"calibrate"} + arguments + output);
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains(phrase), done.err.constData());
    QVERIFY(!done.err.contains("spawned"));
    QCOMPARE(entriesOf(folder.path()), QStringList());
  }

  void anOutputThatCannotBeIsRefusedBeforeAnythingRuns() {
    QTemporaryDir folder;
    for (const QString& output : {folder.filePath("no/such/folder.json"), folder.path()}) {
      const Finished done = cli({"calibrate", "--backend", "gloo", "--output", output});
      QCOMPARE(done.exitCode, 4);
      QVERIFY2(done.err.contains(output.toUtf8()), done.err.constData());
      QVERIFY(!done.err.contains("spawned"));
    }
  }

  void aKilledRankIsNamedAndNothingIsWritten() {
    QTemporaryDir folder;
    Calibrating running(folder.filePath("out.json"));
    QVERIFY2(running.said.contains("running"), running.said.constData());
    const auto ranks = childrenOf(running.process.processId());
    QCOMPARE(ranks.size(), 2);
    ::kill(ranks.back(), SIGKILL);
    QVERIFY(running.end());
    QCOMPARE(running.process.exitCode(), 5);
    QVERIFY2(running.said.contains(" was killed by signal 9"), running.said.constData());
    QCOMPARE(entriesOf(folder.path()), QStringList());
  }

  void aSignalEndsItAndNothingIsWritten() {
    QTemporaryDir folder;
    Calibrating running(folder.filePath("out.json"));
    QVERIFY2(running.said.contains("running"), running.said.constData());
    const auto ranks = childrenOf(running.process.processId());
    ::kill(static_cast<pid_t>(running.process.processId()), SIGINT);
    QVERIFY(running.end());
    QCOMPARE(running.process.exitCode(), 130);
    QCOMPARE(entriesOf(folder.path()), QStringList());
    for (const pid_t rank : ranks) QVERIFY(::kill(rank, 0) != 0);
  }
};

QTEST_GUILESS_MAIN(TestCliCalibrate)
#include "tst_cli_calibrate.moc"
