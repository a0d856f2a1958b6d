/// Signals stop the command line and the window, which leave no files.
#include "tests/support/cli_process.h"
#include "tests/support/patience.h"

#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include <sys/stat.h>

#include <csignal>

using namespace cleave::test;

namespace {

const QString kModel = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");
class Started {
 public:
  explicit Started(const QStringList& arguments, const QString& program = QStringLiteral("cleave-cli"),
                   const QString& temporary = {}) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    if (!temporary.isEmpty()) environment.insert(QStringLiteral("TMPDIR"), temporary);
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(CLEAVE_BIN_DIR "/") + program, arguments);
    if (!process.waitForStarted()) qFatal("%s does not start", qPrintable(program));
  }
  ~Started() {
    process.kill();
    process.waitForFinished();
  }
  void signal(int number) const { ::kill(static_cast<pid_t>(process.processId()), number); }
  QProcess process;
};

QStringList partsIn(const QString& folder) {
  return QDir(folder).entryList({".cleave-*.part"}, QDir::Files | QDir::Hidden);
}

/// A long run with an open output, whose temporary file is in the same folder.
QStringList longRun(const QString& output) {
  return {"run", kModel, "--backend", "gloo", "--ranks", "2", "--seq", "512", "--batch", "8", "--output", output};
}

}  // namespace

class TestCliSignals : public QObject {
  Q_OBJECT
 private slots:
  void aSignalLeavesNoTemporaryFile_data() {
    QTest::addColumn<int>("number");
    QTest::addColumn<bool>("twice");
    QTest::newRow("SIGINT") << SIGINT << false;
    QTest::newRow("SIGTERM") << SIGTERM << false;
    QTest::newRow("SIGHUP") << SIGHUP << false;
    QTest::newRow("SIGINT twice") << SIGINT << true;
  }
  void aSignalLeavesNoTemporaryFile() {
    QFETCH(int, number);
    QFETCH(bool, twice);
    QTemporaryDir folder;
    Started cli(longRun(folder.filePath("out.safetensors")));
    QTRY_VERIFY_WITH_TIMEOUT(!partsIn(folder.path()).isEmpty() || cli.process.state() == QProcess::NotRunning,
                             kPatience);
    QVERIFY2(cli.process.state() == QProcess::Running, cli.process.readAllStandardError().constData());
    cli.signal(number);
    if (twice) cli.signal(SIGTERM);
    QVERIFY(cli.process.waitForFinished(kPatience));
    QCOMPARE(cli.process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(cli.process.exitCode(), 130);
    QCOMPARE(partsIn(folder.path()), QStringList());
    QVERIFY(!QFile::exists(folder.filePath("out.safetensors")));
  }

  /// The ranks and their folder end with the window.
  void aSignalToTheWindowEndsItsRun_data() {
    QTest::addColumn<int>("number");
    QTest::newRow("SIGINT") << SIGINT;
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGHUP") << SIGHUP;
  }
  void aSignalToTheWindowEndsItsRun() {
    QFETCH(int, number);
    QTemporaryDir folder, temporary;
    const QString plan = folder.filePath("plan.json"), script = folder.filePath("run.script");
    QCOMPARE(
        cli({"plan", kModel, "--ranks", "2", "--seq", "512", "--batch", "8", "--engine", "reference", "--json", plan})
            .exitCode,
        0);
    QFile file(script);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("open " + plan.toUtf8() + "\nrun ranks=2 backend=gloo\nwait\n");
    file.close();
    Started window({"--script", script}, QStringLiteral("cleave"), temporary.path());
    const auto runs = [&] { return QDir(temporary.path()).entryList({"cleave-run-*"}, QDir::Dirs); };
    QTRY_VERIFY_WITH_TIMEOUT(!runs().isEmpty() || window.process.state() == QProcess::NotRunning, kPatience);
    QVERIFY(window.process.state() == QProcess::Running);
    window.signal(number);
    QVERIFY(window.process.waitForFinished(kPatience));
    QCOMPARE(window.process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(window.process.exitCode(), 128 + number);
    QCOMPARE(runs(), QStringList());
  }

  void listingPlansEndsWithASignal() {
    Started cli({"best", QStringLiteral(CLEAVE_TEST_DATA "/models/llama-126-layers"), "--memory-budget", "9000GiB",
                 "--count", "1000"});
    QByteArray said;
    const auto isListing = [&] { return (said += cli.process.readAllStandardError()).contains("list plans"); };
    QTRY_VERIFY_WITH_TIMEOUT(isListing(), kPatience);
    cli.signal(SIGINT);
    QVERIFY(cli.process.waitForFinished(kPatience));
    said += cli.process.readAllStandardError();
    QVERIFY2(cli.process.exitCode() == 130, said.constData());
    QVERIFY2(said.contains("cleave-cli: Stopped while listing plans."), said.constData());
    QCOMPARE(cli.process.readAllStandardOutput(), QByteArray());
  }

  void theNextCommandRemovesFilesOfAKilledOne() {
    QTemporaryDir folder;
    {
      Started cli(longRun(folder.filePath("out.safetensors")));
      QTRY_VERIFY_WITH_TIMEOUT(!partsIn(folder.path()).isEmpty(), kPatience);
      cli.signal(SIGKILL);
      QVERIFY(cli.process.waitForFinished(kPatience));
    }
    QCOMPARE(partsIn(folder.path()).size(), 1);
    const Finished plan =
        cli({"plan", kModel, "--seq", "16", "--engine", "reference", "--json", folder.filePath("plan.json")});
    QVERIFY2(plan.exitCode == 0, plan.err.constData());
    QCOMPARE(partsIn(folder.path()), QStringList());
  }

  /// A command waits for the reader of a pipe. The first Ctrl+C ends the wait.
  void waitingForAPipesReaderEndsWithASignal_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("plan --json") << QStringList{"plan", kModel, "--seq", "16", "--engine", "reference", "--json"};
    QTest::newRow("plan --trace") << QStringList{"plan", kModel, "--seq", "16", "--engine", "reference", "--trace"};
    QTest::newRow("export --out") << QStringList{"export", kModel, "--seq", "16", "--engine", "reference", "--out"};
    QTest::newRow("run --output") << QStringList{"run",       kModel, "--seq",      "8",
                                                 "--backend", "gloo", "--no-check", "--output"};
  }
  void waitingForAPipesReaderEndsWithASignal() {
    QFETCH(QStringList, arguments);
    QTemporaryDir folder;
    const QString pipe = folder.filePath("pipe");
    QCOMPARE(::mkfifo(pipe.toUtf8(), 0600), 0);
    Started cli(arguments + QStringList{pipe});
    QVERIFY(!cli.process.waitForFinished(4000));
    cli.signal(SIGINT);
    QVERIFY(cli.process.waitForFinished(kPatience));
    QCOMPARE(cli.process.exitStatus(), QProcess::NormalExit);
    const QByteArray said = cli.process.readAllStandardError();
    QVERIFY2(cli.process.exitCode() == 130, said.constData());
    QVERIFY2(said.contains("Stopped while writing " + pipe.toUtf8()), said.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliSignals)
#include "tst_cli_signals.moc"
