/// Saved runs: their order, their maximum number, a restart, and other files in the folder.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "views/base/text.h"
#include "views/session/run_history.h"

using namespace cleave;
using namespace cleave::views;

namespace {
constexpr int kSoon = 10'000;

std::string reportOf(const std::string& model, double loss) {
  return fmt::format(R"({{"schema": "cleave.run/1", "passed": true, "backend": "gloo",
    "plan": {{"model": "{}", "ranks": 1}},
    "ranks": [{{"rank": 0, "loss": {}, "step_us": 12}}]}})",
                     model, loss);
}

void write(const QString& path, const QByteArray& content) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) qFatal("cannot write a file");
}

std::vector<std::string> modelsOf(const RunHistory& history) {
  std::vector<std::string> models;
  for (const auto& run : history.runs()) models.push_back(run->run.plan.model);
  return models;
}

void settle(RunHistory& history) { QTRY_VERIFY_WITH_TIMEOUT(!history.isBusy(), kSoon); }
}  // namespace

class TestRunHistory : public QObject {
  Q_OBJECT
 private slots:
  void runsStandThereAfterARestart() {
    const QTemporaryDir folder;
    const QString runs = folder.filePath(QStringLiteral("data/runs"));
    {
      RunHistory history;
      history.keepIn(runs);
      settle(history);
      QVERIFY(!QDir(runs).exists());  // the folder is created with the first saved run
      for (const char* model : {"first", "second", "third"}) history.add(reportOf(model, 2.5));
      QCOMPARE(modelsOf(history), (std::vector<std::string>{"third", "second", "first"}));
      settle(history);
      QCOMPARE(QDir(runs).entryList(QDir::Files).size(), 3);
    }
    RunHistory again;
    again.keepIn(runs);
    settle(again);
    QCOMPARE(modelsOf(again), (std::vector<std::string>{"third", "second", "first"}));
    QCOMPARE(again.runs()[0]->run.loss(), std::optional(2.5));
    QVERIFY(again.runs()[0]->at.isValid() && again.runs()[0]->at > again.runs()[1]->at);
    QVERIFY(again.trouble().isEmpty());
    again.forget(1);
    QCOMPARE(modelsOf(again), (std::vector<std::string>{"third", "first"}));
    settle(again);
    QCOMPARE(QDir(runs).entryList(QDir::Files).size(), 2);
    again.forget(7);
    QCOMPARE(again.runs().size(), std::size_t(2));
  }

  void withoutAFolderTheyLastForTheSitting() {
    RunHistory history;
    QSignalSpy changed(&history, &RunHistory::changed);
    history.add(reportOf("one", 1));
    QCOMPARE(changed.size(), 1);
    QCOMPARE(history.runs().size(), std::size_t(1));
    QVERIFY(!history.isBusy());
  }

  void badFilesAreLeftOutAndLeftAlone_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("no JSON") << QByteArray("{{{");
    QTest::newRow("another schema") << QByteArray("{\"schema\": \"cleave.plan/1\"}");
    QTest::newRow("deep") << QByteArray(100'000, '[');
    QTest::newRow("bytes") << QByteArray("\xff\xfe\x00\x01", 4);
  }
  void badFilesAreLeftOutAndLeftAlone() {
    QFETCH(QByteArray, content);
    const QTemporaryDir folder;
    const QString bad = folder.filePath(QStringLiteral("20250101-000000-000.json"));
    write(bad, content);
    write(folder.filePath(QStringLiteral("20240101-000000-000.json")), QByteArray::fromStdString(reportOf("good", 1)));
    write(folder.filePath(QStringLiteral("notes.json")), "not ours");
    write(folder.filePath(QStringLiteral("99999999-999999-999.json")), "no day");
    RunHistory history;
    history.keepIn(folder.path());
    settle(history);
    QCOMPARE(modelsOf(history), std::vector<std::string>{"good"});
    QVERIFY2(history.trouble().startsWith(QStringLiteral("A saved run cannot be read and is not listed: ")),
             qPrintable(history.trouble()));
    QVERIFY2(history.trouble().contains(bad), qPrintable(history.trouble()));
    QVERIFY(!history.trouble().contains(QLatin1Char('\n')));
    QVERIFY(QFile::exists(bad) && QFile::exists(folder.filePath(QStringLiteral("notes.json"))));
  }

  void theOldestMakeRoom() {
    const QTemporaryDir folder;
    RunHistory history;
    history.keepIn(folder.path());
    settle(history);
    for (int i = 0; i < RunHistory::kMostKept + 3; ++i) history.add(reportOf(std::to_string(i), i));
    settle(history);
    QCOMPARE(history.runs().size(), std::size_t(RunHistory::kMostKept));
    QCOMPARE(history.runs().back()->run.plan.model, std::string("3"));
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), RunHistory::kMostKept);
  }

  void aFolderThatCannotBeWrittenIsSaid() {
    const QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("file"));
    write(file, "a file, and no folder");
    RunHistory history;
    history.keepIn(file);
    settle(history);
    history.add(reportOf("one", 1));
    settle(history);
    QCOMPARE(history.runs().size(), std::size_t(1));
    QVERIFY2(history.trouble().contains(QStringLiteral("for this session only")), qPrintable(history.trouble()));
  }
};

QTEST_GUILESS_MAIN(TestRunHistory)
#include "tst_run_history.moc"
