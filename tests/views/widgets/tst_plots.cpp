#include <QKeyEvent>
#include <QPainter>
#include <QtTest>

#include "views/widgets/plot_legend.h"
#include "views/widgets/plot_widget.h"

using namespace cleave::views;

namespace {
constexpr int kCell = 20;

/// Cells of 20 pixels, `across` in a row.
class Cells : public PlotWidget {
 public:
  Cells(int count, PlotKeys keys) : PlotWidget(QStringLiteral("Cells"), nullptr), m_count(count), m_keys(keys) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    resize(200, 200);
  }
  void setCount(int count, int current) {
    m_count = count;
    dataChanged(current);
  }
  QPoint middleOf(int mark) const {
    const int across = std::max(1, m_keys.across);
    return {mark % across * kCell + kCell / 2, mark / across * kCell + kCell / 2};
  }
  bool isUsable = false;
  std::vector<int> used, clickedAgain;
  int moves = 0;

 protected:
  void paintPlot(QPainter&) override {}
  int markCount() const override { return m_count; }
  int markAt(const QPointF& position) const override {
    for (int i = 0; i < m_count; ++i)
      if (QRectF(middleOf(i) - QPoint(kCell / 2, kCell / 2), QSizeF(kCell, kCell)).contains(position)) return i;
    return -1;
  }
  PlotTip tipOf(int mark) const override { return {QStringLiteral("cell %1").arg(mark)}; }
  PlotKeys keys(Qt::KeyboardModifiers) const override { return m_keys; }
  void currentMarkChanged() override { ++moves; }
  void markClicked(int mark, bool wasCurrent) override {
    if (wasCurrent) clickedAgain.push_back(mark);
  }
  bool useMark(int mark) override {
    if (isUsable) used.push_back(mark);
    return isUsable;
  }

 private:
  int m_count;
  PlotKeys m_keys;
};

/// False if the widget leaves the key to its parents.
bool takes(QWidget& widget, Qt::Key key) {
  QKeyEvent event(QEvent::KeyPress, key, Qt::NoModifier);
  QCoreApplication::sendEvent(&widget, &event);
  return event.isAccepted();
}
}  // namespace

class TestPlots : public QObject {
  Q_OBJECT
 private slots:
  void zoomKeepsThePivot() {
    const PlotRange all{0, 1000};
    PlotRange shown = PlotRange{0, 1000}.zoomed(0.5, 250, all, 16);
    QCOMPARE(shown.length(), 500.0);
    QCOMPARE(shown.share(250), 0.25);
    for (int i = 0; i < 20; ++i) shown = shown.zoomed(0.5, 250, all, 16);
    QCOMPARE(shown.length(), 16.0);
    QCOMPARE(shown.share(250), 0.25);  // also at the limit
    for (int i = 0; i < 20; ++i) shown = shown.zoomed(2, 250, all, 16);
    QCOMPARE(shown.low, 0.0);
    QCOMPARE(shown.high, 1000.0);
  }

  void rangesStayWithinTheWhole() {
    const PlotRange all{0, 100};
    QCOMPARE((PlotRange{90, 120}.within(all, 1).low), 70.0);
    QCOMPARE((PlotRange{-10, 20}.within(all, 1).high), 30.0);
    QCOMPARE((PlotRange{50, 50}.within(all, 10).length()), 10.0);
    QCOMPARE((PlotRange{-500, 500}.within(all, 10).length()), 100.0);
    QCOMPARE((PlotRange{0, 1}.within({0, 4}, 16).length()), 4.0);  // the whole is shorter than the least
  }

  void frameMapsBothWays() {
    const PlotFrame frame{QRectF(10, 20, 100, 50), {0, 200}, {0, 5}};
    QCOMPARE(frame.at(0, 0), QPointF(10, 70));
    QCOMPARE(frame.at(200, 5), QPointF(110, 20));
    QCOMPARE(frame.fromX(frame.toX(37)), 37.0);
  }

  void titlesHaveNameAndUnit() {
    const PlotAxis bytes = PlotAxis::ofBytes(0, 3 << 20, 4);
    QCOMPARE(bytes.title(), QStringLiteral("MiB"));
    QCOMPARE(bytes.named(QStringLiteral("bytes per rank")).title(), QStringLiteral("bytes per rank, MiB"));
    QCOMPARE(PlotAxis::ofNumbers(0, 3, 4).named(QStringLiteral("step")).title(), QStringLiteral("step"));
  }

  void legendsUseAsManyRowsAsTheyNeed() {
    PlotLegend legend{QFont()};
    QCOMPARE(legend.heightFor(100), 0);
    for (int i = 0; i < 6; ++i) legend.add(QStringLiteral("category %1").arg(i), PlotLegend::swatch(Qt::red));
    const int one = legend.heightFor(10'000);
    QCOMPARE(legend.heightFor(1), 6 * one);
    QVERIFY(legend.heightFor(300) > one && legend.heightFor(300) < 6 * one);
  }

  void keysMoveBetweenMarks() {
    Cells cells(8, {.across = 3});
    QVERIFY(takes(cells, Qt::Key_Right));
    QCOMPARE(cells.currentMark(), 0);
    QVERIFY(takes(cells, Qt::Key_Down));
    QCOMPARE(cells.currentMark(), 3);
    QCOMPARE(cells.accessibleDescription(), QStringLiteral("cell 3"));
    takes(cells, Qt::Key_End);
    QCOMPARE(cells.currentMark(), 7);
    takes(cells, Qt::Key_Right);
    takes(cells, Qt::Key_Down);  // no mark below
    QCOMPARE(cells.currentMark(), 7);
    takes(cells, Qt::Key_Up);
    QCOMPARE(cells.currentMark(), 4);
    takes(cells, Qt::Key_Home);
    QCOMPARE(cells.currentMark(), 0);
    QCOMPARE(cells.moves, 5);
    QVERIFY(!takes(cells, Qt::Key_F8));
    QVERIFY(!takes(cells, Qt::Key_Return));  // marks have no use
    cells.isUsable = true;
    QVERIFY(takes(cells, Qt::Key_Space));
    QCOMPARE(cells.used, std::vector<int>{0});
  }

  void aListLeavesSidewaysKeysToItsParent() {
    Cells list(3, {.along = 0, .across = 1, .first = Qt::Key_PageUp, .last = Qt::Key_PageDown});
    QVERIFY(takes(list, Qt::Key_PageDown));
    QCOMPARE(list.currentMark(), 2);
    for (const Qt::Key key : {Qt::Key_Left, Qt::Key_Right, Qt::Key_Home, Qt::Key_End}) QVERIFY(!takes(list, key));
    list.setCount(0, -1);
    QVERIFY(!takes(list, Qt::Key_PageUp));
    QVERIFY(list.accessibleDescription().isEmpty());
  }

  void aRowMovesWithAllArrows() {
    Cells row(10, {.along = 4});
    for (const Qt::Key key : {Qt::Key_Down, Qt::Key_Right, Qt::Key_Down}) takes(row, key);
    QCOMPARE(row.currentMark(), 9);  // 3, 7, and no further than the last
    takes(row, Qt::Key_Up);
    QCOMPARE(row.currentMark(), 5);
  }

  void thePointerReadsAndAClickSelects() {
    Cells cells(8, {.across = 3});
    cells.show();
    QTest::mouseMove(&cells, cells.middleOf(4));
    QTRY_COMPARE(cells.hoveredMark(), 4);
    QCOMPARE(cells.currentMark(), -1);
    QCOMPARE(cells.shownMark(), 4);
    QTest::mouseClick(&cells, Qt::LeftButton, {}, cells.middleOf(5));
    QCOMPARE(cells.currentMark(), 5);
    QVERIFY(cells.clickedAgain.empty());
    QTest::mouseClick(&cells, Qt::LeftButton, {}, cells.middleOf(5));
    QCOMPARE(cells.clickedAgain, std::vector<int>{5});
    QCOMPARE(cells.moves, 1);
    takes(cells, Qt::Key_Left);  // now the keyboard's mark is shown
    QCOMPARE(cells.shownMark(), 4);
    QCOMPARE(cells.hoveredMark(), -1);
  }
};

QTEST_MAIN(TestPlots)
#include "tst_plots.moc"
