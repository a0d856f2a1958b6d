// The n-th read, write or allocation fails, for each n, in opening, planning, saving, downloading and running. Each
// failure gives one sentence and leaves no incomplete file.
#include "tests/support/cli_process.h"
#include "tests/support/files_below.h"
#include "tests/support/hub_server.h"
#include "tests/support/seeds.h"

#include <QDirIterator>
#include <QRegularExpression>
#include <QSet>
#include <QTest>

using namespace cleave;
using test::contentOf;
using test::Finished;
using test::HubServer;

namespace {

const QString kCli = QStringLiteral(CLEAVE_BIN_DIR "/cleave-cli");
const QString kLibrary = QStringLiteral(CLEAVE_BIN_DIR "/../tests/libfail_nth.so");
constexpr int kMost = 200;

QMap<QString, QByteArray> contents(const QString& folder) {
  QMap<QString, QByteArray> all;
  for (QDirIterator at(folder, QDir::Files | QDir::Hidden | QDir::NoSymLinks, QDirIterator::Subdirectories);
       at.hasNext();) {
    const QString path = at.next();
    all[path] = contentOf(path);
  }
  return all;
}

/// Some numbers from 1 to 200; all of them in long runs.
QList<int> someOf() {
  QList<int> numbers;
  const bool all = test::rounds(10) > 10;
  for (int n = 1; n <= kMost; n = all || n < 4 ? n + 1 : n + n / 2) numbers << n;
  return numbers;
}

}  // namespace

class TstCliNthFailure : public QObject {
  Q_OBJECT

  HubServer m_server;
  std::unique_ptr<QTemporaryDir> m_folder;
  QSet<QByteArray> m_served;  ///< contents of the Hub's files

  QString at(const QString& name) const { return m_folder->filePath(name); }

  Finished run(const QStringList& arguments, const char* what, int n) const {
    QProcessEnvironment environment = m_server.environment(at("cache"));
    if (n > 0) {
      environment.insert("LD_PRELOAD", kLibrary);
      environment.insert("CLEAVE_FAIL_BELOW", m_folder->path());
      environment.insert(what, QString::number(n));
    }
    QProcess process;
    process.setProcessEnvironment(environment);
    process.start(kCli, arguments);
    return test::finishedOf(process);
  }

  /// Empty if the error is one clean sentence.
  static QString whyNotClean(const Finished& done) {
    if (done.crashed) return QStringLiteral("it crashed");
    if (done.exitCode == 0) return {};
    QByteArray last;
    for (const QByteArray& line : done.err.split('\n'))
      if (line.startsWith("cleave-cli: ")) last = line;
    if (last.isEmpty()) return QStringLiteral("it prints no error");
    if (!last.endsWith('.') && !last.endsWith(')')) return QStringLiteral("the error is not a sentence");
    for (const char* words : {"terminate called", "what():", "bad_alloc", "Exception raised from", "INTERNAL ASSERT"})
      if (done.err.contains(words)) return QStringLiteral("it prints \"%1\"").arg(words);
    return {};
  }

  /// A complete file of the Hub, which has its final name.
  static bool isBlob(const QString& file) {
    static const QRegularExpression kBlob("/blobs/[0-9a-f]+$");
    return kBlob.match(file).hasMatch();
  }

  /// Outputs are complete or missing, existing files are unchanged, and cached files equal the Hub's.
  QString whyNotWhole(const QMap<QString, QByteArray>& before, const QStringList& outputs, bool hasSucceeded) const {
    const QMap<QString, QByteArray> after = contents(m_folder->path());
    for (auto file = before.begin(); file != before.end(); ++file)
      if (after.value(file.key()) != file.value()) return file.key() + " has changed";
    for (auto file = after.begin(); file != after.end(); ++file) {
      if (before.contains(file.key())) continue;
      if (file.key().contains("/cache/")) {
        if (isBlob(file.key()) && !m_served.contains(file.value())) return file.key() + " has other bytes than the Hub";
        continue;
      }
      if (!outputs.contains(QFileInfo(file.key()).fileName())) return file.key() + " was not removed";
      const bool isJson = file.key().endsWith(".json");
      if (isJson && QJsonDocument::fromJson(file.value()).isNull()) return file.key() + " is half-written";
      if (file.value().isEmpty()) return file.key() + " is empty";
    }
    for (const QString& output : outputs)
      if (hasSucceeded && !after.contains(at(output))) return output + " was not written";
    return {};
  }

 private slots:
  void initTestCase() {
    QVERIFY2(m_server.isUp(), "python3 is needed to serve models");
    QVERIFY2(QFile::exists(kLibrary), qPrintable(kLibrary));
    m_server.addFolder("org/tiny", CLEAVE_SOURCE_DIR "/resources/models/tiny-llama");
  }
  void init() {
    m_folder = std::make_unique<QTemporaryDir>();
    QDir().mkpath(at("model"));
    for (const QFileInfo& file : QDir(CLEAVE_SOURCE_DIR "/resources/models/tiny-llama").entryInfoList(QDir::Files))
      QVERIFY(QFile::copy(file.filePath(), at("model/" + file.fileName())));
    for (const QByteArray& content : contents(at("model"))) m_served.insert(content);
  }

  void nothingIsHalfWritten_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QStringList>("outputs");
    QTest::addColumn<QByteArray>("what");
    const auto row = [](const char* name, const QStringList& arguments, const QStringList& outputs) {
      QTest::newRow(qPrintable(QString("%1, I/O").arg(name))) << arguments << outputs << QByteArray("CLEAVE_FAIL_IO");
      QTest::newRow(qPrintable(QString("%1, memory").arg(name)))
          << arguments << outputs << QByteArray("CLEAVE_FAIL_MEMORY");
    };
    row("open", {"info", "@model", "--json", "@info.json"}, {"info.json"});
    row("save", {"plan", "@model", "--engine", "reference", "--json", "@plan.json", "--trace", "@search.trace"},
        {"plan.json", "search.trace"});
    row("download", {"download", "org/tiny", "--json", "@download.json"}, {"download.json"});
    row("run",
        {"run", "@model", "--engine", "reference", "--json", "@run.json", "--output", "@run.safetensors", "--timeline",
         "@run.timeline"},
        {"run.json", "run.safetensors", "run.timeline"});
  }
  void nothingIsHalfWritten() {
    QFETCH(QStringList, arguments);
    QFETCH(QStringList, outputs);
    QFETCH(QByteArray, what);
    for (QString& argument : arguments)
      if (argument.startsWith('@')) argument = at(argument.mid(1));
    const auto before = contents(m_folder->path());
    int failed = 0;
    for (const int n : someOf()) {
      const Finished done = run(arguments, what.constData(), n);
      QString wrong = whyNotClean(done);
      if (wrong.isEmpty()) wrong = whyNotWhole(before, outputs, done.exitCode == 0);
      QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1=%2: %3\n%4").arg(what).arg(n).arg(wrong, QString(done.err))));
      failed += done.exitCode != 0 ? 1 : 0;
      for (const QString& output : outputs) QFile::remove(at(output));
    }
    qInfo("%d of %lld failed", failed, static_cast<long long>(someOf().size()));
    QVERIFY(failed > 0);
    // The command works with the remaining files when nothing fails.
    const Finished fine = run(arguments, what.constData(), 0);
    QVERIFY2(fine.exitCode == 0, fine.err);
    QVERIFY2(whyNotWhole(before, outputs, true).isEmpty(), qPrintable(whyNotWhole(before, outputs, true)));
    if (arguments.first() == "download") QVERIFY(contents(at("cache")).keys().filter("/blobs/").size() >= 5);
  }
};

QTEST_GUILESS_MAIN(TstCliNthFailure)
#include "tst_cli_nth_failure.moc"
