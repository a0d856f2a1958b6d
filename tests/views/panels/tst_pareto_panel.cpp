// Time against memory: axes, the plot by mouse and keyboard, and the panel's states.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>
#include <set>

#include "tests/support/panel_fixture.h"
#include "tests/support/patience.h"
#include "views/panels/pareto_panel.h"
#include "views/panels/pareto_plot.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

namespace {
constexpr std::int64_t kMs = 1'000'000'000'000, kMiB = 1 << 20;

ParetoData fourPlans() {
  ParetoData data;
  data.front.points = {{2 * kMs, 900 * kMiB}, {5 * kMs, 300 * kMiB}, {3 * kMs, 500 * kMiB}, {9 * kMs, 250 * kMiB}};
  data.present = solve::ParetoPoint{3 * kMs, 500 * kMiB};
  data.budgetBytes = 700 * kMiB;
  return data;
}

std::unique_ptr<ParetoPlot> shownPlot(ParetoData data) {
  auto plot = std::make_unique<ParetoPlot>();
  plot->resize(480, 320);
  plot->setData(std::move(data));
  plot->show();
  return plot;
}
}  // namespace

class TestParetoPanel : public QObject {
  Q_OBJECT
 private slots:
  void axesHaveFewRoundTicksInOneUnit_data();
  void axesHaveFewRoundTicksInOneUnit();
  void pointsStandInOrderAndInside();
  void keysWalkThePoints();
  void pointerReadsAndPicks();
  void readoutComparesWithThePlanShown();
  void aThinnedFrontSaysSo();
  void theCurrentPointOutlivesNewData();
  void emptyAndTinyPlotsPaint();
  void panelSaysWhatFillsIt();
};

void TestParetoPanel::axesHaveFewRoundTicksInOneUnit_data() {
  QTest::addColumn<bool>("isTime");
  QTest::addColumn<qint64>("low");
  QTest::addColumn<qint64>("high");
  QTest::addColumn<QString>("unit");
  const auto row = [](const char* name, bool isTime, qint64 low, qint64 high, const char* unit) {
    QTest::newRow(name) << isTime << low << high << QString::fromUtf8(unit);
  };
  row("milliseconds", true, 2 * kMs, 9 * kMs, "ms");
  row("close together", true, 2 * kMs, 2 * kMs + kMs / 1000, "ms");
  row("one value", true, 3 * kMs, 3 * kMs, "ms");
  row("microseconds", true, kMs / 1000, kMs / 200, "µs");
  row("from zero", true, 0, 40 * kMs, "ms");
  row("nothing at all", true, 0, 0, "fs");
  row("seconds", true, 500 * kMs, 90'000 * kMs, "s");
  row("mebibytes", false, 250 * kMiB, 900 * kMiB, "MiB");
  row("gibibytes", false, 250 * kMiB, 9000 * kMiB, "GiB");
  row("bytes", false, 0, 12, "B");
  row("huge", false, 1, 1ll << 60, "PiB");
}

void TestParetoPanel::axesHaveFewRoundTicksInOneUnit() {
  QFETCH(bool, isTime);
  QFETCH(qint64, low);
  QFETCH(qint64, high);
  QFETCH(QString, unit);
  for (const int most : {1, 3, 6, 12}) {
    const PlotAxis axis = isTime ? PlotAxis::ofTime(low, high, most) : PlotAxis::ofBytes(low, high, most);
    QCOMPARE(axis.unit(), unit);
    QVERIFY(axis.holds(double(low)) && axis.holds(double(high)) && axis.low() < axis.high());
    QVERIFY2(axis.ticks().size() <= std::size_t(std::max(most, 3)) + 1,
             qPrintable(QString::number(axis.ticks().size())));
    std::set<QString> labels;
    for (const double tick : axis.ticks()) {
      QVERIFY(axis.share(tick) >= -1e-9 && axis.share(tick) <= 1 + 1e-9);
      labels.insert(axis.label(tick));
    }
    QCOMPARE(labels.size(), axis.ticks().size());  // each label once: they have the decimals they need
    QVERIFY(axis.ticks().size() >= 2);
  }
}

void TestParetoPanel::pointsStandInOrderAndInside() {
  const auto plot = shownPlot(fourPlans());
  QCOMPARE(plot->count(), 4);
  for (int i = 0; i < 4; ++i) {
    const QPointF at = plot->positionOf(plot->point(i));
    QVERIFY(QRectF(plot->rect()).contains(at));
    QCOMPARE(plot->pointAt(at), i);
    if (i == 0) continue;
    QVERIFY(plot->point(i - 1).bytes < plot->point(i).bytes);
    QVERIFY(plot->positionOf(plot->point(i - 1)).x() < at.x());
    QVERIFY(plot->positionOf(plot->point(i - 1)).y() < at.y());  // more bytes, less time: lower
  }
  QCOMPARE(plot->pointAt({1, 1}), -1);
}

void TestParetoPanel::keysWalkThePoints() {
  const auto plot = shownPlot(fourPlans());
  QSignalSpy used(plot.get(), &ParetoPlot::pointUsed);
  QCOMPARE(plot->current(), 2);  // the plan shown now: 500 MiB
  QTest::keyClick(plot.get(), Qt::Key_Home);
  QCOMPARE(plot->current(), 0);
  QTest::keyClick(plot.get(), Qt::Key_Left);
  QCOMPARE(plot->current(), 0);
  QTest::keyClick(plot.get(), Qt::Key_Right);
  QCOMPARE(plot->current(), 1);
  QTest::keyClick(plot.get(), Qt::Key_End);
  QTest::keyClick(plot.get(), Qt::Key_Right);
  QCOMPARE(plot->current(), 3);
  QCOMPARE(used.count(), 0);
  QTest::keyClick(plot.get(), Qt::Key_Return);
  QCOMPARE(used.count(), 1);
  QCOMPARE(used[0][0].value<solve::ParetoPoint>().bytes, 900 * kMiB);
}

void TestParetoPanel::pointerReadsAndPicks() {
  const auto plot = shownPlot(fourPlans());
  QSignalSpy used(plot.get(), &ParetoPlot::pointUsed);
  const QPoint first = plot->positionOf(plot->point(0)).toPoint();
  QTest::mouseMove(plot.get(), first);
  QTRY_VERIFY2(plot->readout().contains(QStringLiteral("250 MiB")), qPrintable(plot->readout()));
  QCOMPARE(plot->current(), 2);  // hovering reads and does not select
  QTest::mouseClick(plot.get(), Qt::LeftButton, {}, first);
  QCOMPARE(plot->current(), 0);
  QCOMPARE(used.count(), 0);
  QTest::mouseDClick(plot.get(), Qt::LeftButton, {}, first);
  QCOMPARE(used.count(), 1);
}

void TestParetoPanel::readoutComparesWithThePlanShown() {
  const auto plot = shownPlot(fourPlans());
  QVERIFY(plot->readout().contains(QStringLiteral("the plan shown now")));
  plot->setCurrent(3);
  QVERIFY2(plot->readout().contains(QStringLiteral("+400 MiB")), qPrintable(plot->readout()));
  QVERIFY(plot->readout().contains(QStringLiteral("over the budget by 200 MiB")));
  QCOMPARE(plot->accessibleDescription(), plot->readout());
  plot->setCurrent(0);
  QVERIFY2(plot->readout().contains(QStringLiteral("−250 MiB")), qPrintable(plot->readout()));
  QVERIFY(!plot->readout().contains(QStringLiteral("budget")));
}

void TestParetoPanel::aThinnedFrontSaysSo() {
  ParetoData data = fourPlans();
  const auto plot = shownPlot(data);
  QVERIFY(plot->summary().contains(QStringLiteral("4 plans")) &&
          !plot->summary().contains(QStringLiteral("not all of them")));
  data.front.isExact = false;
  data.front.worstGap = 0.0042;
  plot->setData(data);
  QVERIFY2(plot->summary().contains(QStringLiteral("0.42 %")), qPrintable(plot->summary()));
}

void TestParetoPanel::theCurrentPointOutlivesNewData() {
  const auto plot = shownPlot(fourPlans());
  plot->setCurrent(3);
  ParetoData data = fourPlans();
  data.front.points.push_back({20 * kMs, 100 * kMiB});
  plot->setData(data);
  QCOMPARE(plot->point(plot->current()).bytes, 900 * kMiB);
  data.front.points = {{20 * kMs, 100 * kMiB}};
  plot->setData(data);
  QCOMPARE(plot->current(), -1);
}

void TestParetoPanel::emptyAndTinyPlotsPaint() {
  ParetoPlot plot;
  for (const QSize size : {QSize(480, 320), QSize(60, 40), QSize(1, 1)}) {
    plot.resize(size);
    plot.setData({});
    QCOMPARE(plot.grab().size(), size);
    QVERIFY(plot.summary().isEmpty());
    QTest::keyClick(&plot, Qt::Key_Return);  // nothing to use
    ParetoData one;
    one.front.points = {{kMs, kMiB}};
    one.budgetBytes = std::int64_t(80) << 30;
    plot.setData(one);
    QCOMPARE(plot.grab().size(), size);
    QVERIFY(plot.summary().contains(QStringLiteral("One plan")));
  }
}

void TestParetoPanel::panelSaysWhatFillsIt() {
  Session session;
  ParetoPanel panel(session.opened(), session.settings(), session.plans(), session.answers(), session.jobs());
  panel.resize(500, 360);
  panel.show();
  const auto said = [&] {
    QString text;
    for (const QLabel* label : panel.findChildren<QLabel*>())
      if (label->isVisible()) text += label->text();
    return text;
  };
  const auto button = [&](const QString& text) -> QPushButton* {
    for (QPushButton* found : panel.findChildren<QPushButton*>())
      if (found->isVisible() && found->text() == text) return found;
    return nullptr;
  };
  QVERIFY(said().contains(QStringLiteral("Open a model")));
  session.settings().setEngine(solve::Engine::Learning);
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan() && button(QStringLiteral("Solve with optimal")),
                           kPatience);
  button(QStringLiteral("Solve with optimal"))->click();
  QCOMPARE(session.settings().spec().engine, solve::Engine::Optimal);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
  QTRY_VERIFY_WITH_TIMEOUT(button(QStringLiteral("Compute the front")), kPatience);
  button(QStringLiteral("Compute the front"))->click();
  QTRY_VERIFY_WITH_TIMEOUT(session.answers().front(), kPatience);
  QVERIFY2(session.answers().front()->failure.isEmpty(), qPrintable(session.answers().front()->failure));
  QTRY_VERIFY_WITH_TIMEOUT(button(QStringLiteral("Use this plan")), kPatience);
  auto* plot = panel.findChild<ParetoPlot*>();
  QVERIFY(plot->count() > 0 && plot->isVisible());
  QTest::keyClick(plot, Qt::Key_Home);
  const solve::ParetoPoint smallest = plot->point(0);
  QTest::keyClick(plot, Qt::Key_Return);
  QTRY_VERIFY_WITH_TIMEOUT(
      session.settings().spec().cost.memoryBudget.has_value() && session.isIdle() && session.plans().plan(), kPatience);
  QCOMPARE(session.settings().spec().cost.slackPercent, 0.0);
  QCOMPARE(session.plans().plan()->cost.bytes(), smallest.bytes);
  QVERIFY(session.plans().plan()->cost.femtoseconds() == smallest.femtoseconds);
}

QTEST_MAIN(TestParetoPanel)
#include "tst_pareto_panel.moc"
