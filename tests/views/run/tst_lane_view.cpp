/// Lanes: the text of stretches, zoom and keyboard, and readability with many ranks and stretches.
#include <QScrollBar>
#include <QtTest>
#include <set>

#include "tests/support/patience.h"
#include "tests/support/plan_fixture.h"
#include "views/run/lane_view.h"
#include "views/run/line_chart.h"
#include "views/run/rank_bars.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;
using pipeline::Doing;
using pipeline::Stretch;
using protocol::SpanKind;

namespace {

std::shared_ptr<const plan::Plan> onePlan() {
  return std::make_shared<const plan::Plan>(plan::testing::planned(plan::testing::requestFor(
      "x: f32[4,8] = input\nw: f32[8,8] = parameter @up\ny: f32[4,8] = aten::linear(x, w, None) @up\nreturn y=y\n",
      {.worldSize = 1}, {})));
}

/// The linear, then waiting, then a collective, repeated this many times on each rank, one microsecond each.
std::shared_ptr<const pipeline::Timeline> timelineOf(int ranks, int times) {
  auto timeline = std::make_shared<pipeline::Timeline>();
  timeline->lanes.resize(static_cast<std::size_t>(ranks));
  timeline->sums.resize(static_cast<std::size_t>(ranks));
  for (auto& lane : timeline->lanes) {
    std::int64_t at = 0;
    for (int i = 0; i < times; ++i) {
      for (const Doing doing : {Doing::Compute, Doing::Waiting, Doing::Collective}) {
        Stretch stretch{.doing = doing,
                        .kind = doing == Doing::Compute ? SpanKind::Forward : SpanKind::AllReduce,
                        .node = doing == Doing::Compute ? 2 : -1,
                        .ranks = ranks,
                        .beginNs = at,
                        .endNs = at + 1000};
        if (doing != Doing::Compute) stretch.collective = i, stretch.bytes = 4096;
        lane.push_back(stretch);
        at += 1000;
      }
    }
    timeline->totalNs = at;
  }
  for (auto& sum : timeline->sums) sum = {timeline->totalNs / 3, timeline->totalNs / 3, 0, timeline->totalNs, 0};
  return timeline;
}

std::set<QRgb> coloursIn(const QImage& image, const QRect& area) {
  std::set<QRgb> colours;
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x) colours.insert(image.pixel(x, y));
  return colours;
}

}  // namespace

class TestLaneView : public QObject {
  Q_OBJECT
 private slots:
  void whatIsUnderThePointerIsSaid() {
    LaneView view;
    view.resize(800, 200);
    view.show();
    view.setTimeline(timelineOf(2, 4), onePlan());
    const auto place = view.placeAt(view.rectOf({1, 0}).center());
    QVERIFY(place && *place == (LaneView::Place{1, 0}));
    const QString compute = view.textOf({1, 0});
    QVERIFY2(compute.contains(QStringLiteral("linear")) && compute.contains(QStringLiteral("in up")),
             qPrintable(compute));
    QVERIFY2(compute.contains(QStringLiteral("rank 1: 1 µs")) || compute.contains(QStringLiteral("rank 1: 1.00 µs")),
             qPrintable(compute));
    QVERIFY2(compute.contains(QStringLiteral("predicted on ")), qPrintable(compute));
    const QString waiting = view.textOf({0, 1});
    QVERIFY2(
        waiting.contains(QStringLiteral("waiting for all_reduce")) && !waiting.contains(QStringLiteral("predicted")),
        qPrintable(waiting));
    const QString collective = view.textOf({0, 2});
    QVERIFY2(collective.contains(QStringLiteral("4 KiB over 2 ranks")), qPrintable(collective));
    QVERIFY(!view.placeAt({2, 2}));
  }

  void aClickChoosesTheNode() {
    LaneView view;
    view.resize(800, 200);
    view.show();
    view.setTimeline(timelineOf(2, 4), onePlan());
    QSignalSpy chosen(&view, &LaneView::nodeChosen), activated(&view, &LaneView::nodeActivated);
    QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.rectOf({0, 3}).center());
    QCOMPARE(chosen.size(), 1);
    QCOMPARE(chosen[0][0].value<graph::NodeId>(), graph::NodeId(2));
    QVERIFY(*view.chosen() == (LaneView::Place{0, 3}));
    QTest::keyClick(&view, Qt::Key_Return);
    QCOMPARE(activated.size(), 1);
  }

  void theKeyboardWalksAndZooms() {
    LaneView view;
    view.resize(800, 200);
    view.show();
    view.setTimeline(timelineOf(3, 100), onePlan());
    for (int i = 0; i < 6; ++i) QTest::keyClick(&view, Qt::Key_Right);  // the first key selects the first stretch
    QVERIFY(*view.chosen() == (LaneView::Place{0, 5}));
    QTest::keyClick(&view, Qt::Key_Down);
    QCOMPARE(view.chosen()->rank, 1);
    QTest::keyClick(&view, Qt::Key_Left);
    const double all = view.visibleTo() - view.visibleFrom();
    QTest::keyClick(&view, Qt::Key_Plus);
    QTest::keyClick(&view, Qt::Key_Plus);
    QVERIFY(view.visibleTo() - view.visibleFrom() < all / 2);
    QTest::keyClick(&view, Qt::Key_Right);
    const Stretch shown{.beginNs = std::int64_t(view.visibleFrom()), .endNs = std::int64_t(view.visibleTo())};
    const auto begin = std::int64_t(view.chosen()->stretch) * 1000;
    QVERIFY(shown.beginNs <= begin && begin + 1000 <= shown.endNs + 1);  // the selection is scrolled into view
    QTest::keyClick(&view, Qt::Key_Minus);
    QTest::keyClick(&view, Qt::Key_0);
    QCOMPARE(view.visibleTo() - view.visibleFrom(), all);
  }

  void theWheelZoomsAtThePointerAndDraggingPans() {
    LaneView view;
    view.resize(800, 200);
    view.show();
    view.setTimeline(timelineOf(2, 100), onePlan());
    const QPoint at = view.rectOf({0, 150}).center();
    const auto before = view.placeAt(at);
    for (int i = 0; i < 8; ++i) {
      QWheelEvent wheel(at, view.viewport()->mapToGlobal(at), {}, {0, 120}, Qt::NoButton, Qt::NoModifier,
                        Qt::NoScrollPhase, false);
      QCoreApplication::sendEvent(view.viewport(), &wheel);
    }
    QVERIFY(before && view.placeAt(at) && *view.placeAt(at) == *before);
    const double from = view.visibleFrom(), length = view.visibleTo() - from;
    QTest::mousePress(view.viewport(), Qt::LeftButton, {}, at);
    QMouseEvent move(QEvent::MouseMove, at - QPoint(60, 0), view.viewport()->mapToGlobal(at - QPoint(60, 0)),
                     Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(view.viewport(), &move);
    QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, at - QPoint(60, 0));
    QVERIFY(view.visibleFrom() > from);
    QCOMPARE(view.visibleTo() - view.visibleFrom(), length);
    QVERIFY(!view.chosen());  // a drag is not a click
    view.horizontalScrollBar()->setValue(0);
    QCOMPARE(view.visibleFrom(), 0.0);
  }

  /// Each of 64 lanes is at least as high as a line of text, and each can be scrolled to.
  void manyRanksStayLegible() {
    LaneView view;
    view.resize(500, 200);
    view.show();
    view.setTimeline(timelineOf(64, 3), onePlan());
    QVERIFY(view.rectOf({0, 0}).height() >= 12);
    QVERIFY(view.verticalScrollBar()->maximum() > 0);
    view.choose({63, 2});
    QVERIFY2(view.viewport()->rect().contains(view.rectOf({63, 2}).center()), "the last rank is in view");
  }

  /// 300,000 stretches are painted as fast as the pixels they cover, and all kinds must be visible.
  void manyPartsArePaintedOnceAPixel() {
    LaneView view;
    view.resize(800, 120);
    view.show();
    view.setTimeline(timelineOf(2, 50'000), onePlan());
    const QImage picture = view.viewport()->grab().toImage();
    QVERIFY(
        coloursIn(picture, view.rectOf({0, 0}).united(view.rectOf({0, 149'999})).intersected(picture.rect())).size() >
        1);
  }

  void colourIsNotAllThatTellsKindsApart() {
    LaneView view;
    view.resize(800, 120);
    view.show();
    view.setTimeline(timelineOf(1, 1), onePlan());
    const QImage grey = view.viewport()->grab().toImage().convertToFormat(QImage::Format_Grayscale8);
    std::set<std::set<QRgb>> looks;
    for (std::size_t i = 0; i < 3; ++i) {
      QRect area = view.rectOf({0, i}).adjusted(4, 2, -4, -2);
      area.setWidth(area.width() / 4);  // next to the text
      looks.insert(coloursIn(grey, area));
    }
    QCOMPARE(looks.size(), std::size_t(3));
  }

  void aLegendNeedsTheRowsThatItNeeds() {
    LaneLegend legend;
    legend.setTimeline(timelineOf(2, 2).get());
    QVERIFY(legend.heightForWidth(120) > legend.heightForWidth(1000));
    legend.setTimeline(nullptr);
    QCOMPARE(legend.heightForWidth(100), 0);
  }

  /// A few ranks in full; many side by side, all on one page.
  void rankBarsOfManyRanksStandSideBySide() {
    RankBars bars;
    std::vector<RankView> ranks(64);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int>(i);
      ranks[i].memory.weights = 1 << 20;
      ranks[i].memory.peak = {2 << 20, 3 << 20};
    }
    bars.setRanks(ranks, 2 << 20);
    bars.resize(900, bars.heightForWidth(900));
    bars.show();
    QVERIFY2(bars.height() < 640, qPrintable(QString::number(bars.height())));
    QVERIFY(bars.fontMetrics().horizontalAdvance(QStringLiteral("rank 63  2 MiB")) < bars.cellOf(63).width());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      QVERIFY(bars.rect().contains(bars.cellOf(i)));
      QCOMPARE(bars.rankAt(bars.cellOf(i).center()), static_cast<int>(i));
    }
  }

  void aChartSaysWhatStandsAtThePointer() {
    LineChart chart;
    chart.resize(400, 200);
    chart.show();
    QVERIFY(chart.readout().isEmpty());
    chart.setData({.title = QStringLiteral("Loss"),
                   .x = ChartUnit::Whole,
                   .y = ChartUnit::Number,
                   .xName = QStringLiteral("step"),
                   .lines = {{QStringLiteral("A"), {{1, 6.5}, {2, std::nan("")}, {3, 4.25}}}}});
    QCOMPARE(chart.readout(), QStringLiteral("step 3 · A: 4.25"));
    QTest::mouseMove(&chart, {60, 100});
    QTRY_COMPARE_WITH_TIMEOUT(chart.readout(), QStringLiteral("step 1 · A: 6.5"), kPatience);
    QVERIFY(!chart.grab().isNull());
  }
};

QTEST_MAIN(TestLaneView)
#include "tst_lane_view.moc"
