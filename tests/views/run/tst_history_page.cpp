// Saved runs as a table, one run as text, and two side by side.
#include <QAbstractItemModelTester>
#include <QTableView>
#include <QtTest>

#include "views/base/text.h"
#include "views/run/history_page.h"
#include "views/run/run_comparison.h"

using namespace cleave;
using namespace cleave::views;

namespace {

std::string reportOf(int ranks, double rate, std::vector<double> losses, bool hasPassed = true) {
  std::string steps;
  for (const double loss : losses)
    steps += fmt::format("{}{{\"loss\": {}, \"step_us\": 1500}}", steps.empty() ? "" : ",", loss);
  return fmt::format(R"({{"schema": "cleave.run/1", "passed": {}, "backend": "gloo", "compared_with": "an unsplit run",
    "plan": {{"model": "models/tiny-llama", "engine": "reference", "ranks": {}, "predicted_memory": 4096}},
    "training": {{"optimizer": "sgd", "learning_rate": {}, "steps": [{}]}},
    "memory": [{{"rank": 0, "peak": {{"name": "peak", "measured": 4000, "predicted": 4096}},
                 "parts": [{{"name": "gradients", "measured": 2048, "predicted": 2048}}]}}]}})",
                     hasPassed, ranks, rate, steps);
}

QString cell(const QAbstractItemModel& model, int row, HistoryModel::Column column) {
  return model.index(row, column).data().toString();
}

}  // namespace

class TestHistoryPage : public QObject {
  Q_OBJECT
 private slots:
  void aRowSaysWhatARunWas() {
    RunHistory history;
    HistoryModel model(history);
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    history.add(reportOf(2, 0.1, {6.5, 4.25}));
    history.add(reportOf(4, 0.1, {6.5}, false));
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(cell(model, 1, HistoryModel::Model), QStringLiteral("tiny-llama"));
    QCOMPARE(cell(model, 1, HistoryModel::Plan), QStringLiteral("reference, 2 ranks, gloo, trained 2 steps with sgd"));
    QCOMPARE(cell(model, 1, HistoryModel::Verdict), QStringLiteral("passed"));
    QCOMPARE(cell(model, 1, HistoryModel::Loss), QStringLiteral("6.5 → 4.25"));
    QCOMPARE(cell(model, 1, HistoryModel::Step), QStringLiteral("1.50 ms"));
    QCOMPARE(cell(model, 0, HistoryModel::Verdict), QStringLiteral("failed"));
    QCOMPARE(cell(model, 0, HistoryModel::Loss), QStringLiteral("6.5"));
    history.forget(0);
    QCOMPARE(model.rowCount(), 1);
  }

  /// The older run is A in any order of selection, and equal settings are not listed.
  void twoAreComparedByWhatDiffers() {
    RunHistory history;
    HistoryPage page(history);
    history.add(reportOf(2, 0.1, {6.5, 4.25}));
    history.add(reportOf(2, 0.4, {6.5, 9.75}));
    QVERIFY(page.compare(1, 2));
    const QString text = page.text();
    const QString settings = text.section(QStringLiteral("Results"), 0, 0);
    QVERIFY2(settings.contains(QStringLiteral("learning rate")), qPrintable(settings));
    QVERIFY2(settings.indexOf(QStringLiteral("0.1")) < settings.indexOf(QStringLiteral("0.4")), qPrintable(settings));
    for (const char* same : {"optimizer", "engine", "backend"})
      QVERIFY2(!settings.contains(QLatin1String(same) + QLatin1Char('\n')), qPrintable(settings));
    QVERIFY2(text.contains(QStringLiteral("gradients")) && text.contains(QStringLiteral("2 KiB")), qPrintable(text));
    const ChartData losses = lossesOf({history.runs()[1], history.runs()[0]});
    QCOMPARE(losses.lines.size(), std::size_t(2));
    QCOMPARE(losses.lines[1].points.back(), QPointF(2, 9.75));
    QVERIFY(page.compare(2, 1));
    QCOMPARE(page.text(), text);
  }

  /// Any setting that differs is listed, not only those of the older reports.
  void everySettingIsCompared() {
    const auto report = [](const std::string& seed, int replicas) {
      return fmt::format(R"({{"schema": "cleave.run/1", "passed": true, "backend": "gloo", "mode": "forward",
        "plan": {{"model": "m", "engine": "reference", "ranks": 2,
                  "arguments": ["--ranks", "2", "--seed", "{}", "--freeze", "a", "--freeze", "b"]}},
        "arguments": ["--skip-weights"], "mesh": {{"dp": {}, "tp": 2}}}})",
                         seed, replicas);
    };
    RunHistory history;
    HistoryPage page(history);
    history.add(report("7", 1));
    history.add(report("7", 1));
    history.add(report("8", 2));
    QVERIFY(page.compare(2, 3));
    QVERIFY2(page.text().contains(QStringLiteral("Both reports list the same settings.")), qPrintable(page.text()));
    QVERIFY(page.compare(1, 2));
    const QString differ = page.text().section(QStringLiteral("Results"), 0, 0);
    QVERIFY2(differ.contains(QStringLiteral("seed")) && differ.contains(QStringLiteral("2 replicas of 2 ranks")),
             qPrintable(differ));
    QVERIFY2(!differ.contains(QStringLiteral("freeze")) && !differ.contains(QStringLiteral("skip-weights")),
             qPrintable(differ));
    QVERIFY(page.showRun(1));
    QVERIFY2(page.text().contains(QStringLiteral("a, b")) && page.text().contains(QStringLiteral("skip-weights")),
             qPrintable(page.text()));
  }

  void nothingIsComparedWithWhatIsNotThere() {
    RunHistory history;
    HistoryPage page(history);
    QVERIFY(!page.showRun(1) && !page.compare(1, 2));
    history.add(reportOf(1, 1, {1}));
    QVERIFY(page.showRun(1) && !page.showRun(0) && !page.showRun(2) && !page.compare(1, 1));
    QVERIFY2(page.text().contains(QStringLiteral("tiny-llama")), qPrintable(page.text()));
  }
};

QTEST_MAIN(TestHistoryPage)
#include "tst_history_page.moc"
