// The position of the drawing in the window: zoom, pan, fit. Numbers only.
#include <QtTest>
#include <cmath>
#include <random>

#include "tests/support/seeds.h"
#include "views/graph/view/viewport.h"

using namespace cleave;
using namespace cleave::views;

namespace {

constexpr double kReach = 80;  // pixels of the drawing that stay in the window

/// A view of a large drawing in a small window, at a zoom with room in all directions.
Viewport largeView() {
  Viewport view;
  view.setWindow({800, 600});
  view.setContent(QSizeF(20'000, 10'000));
  view.fit();
  view.zoomAt(1, {});
  view.panBy({-5'000, -4'000});
  return view;
}

double distance(const QPointF& a, const QPointF& b) { return std::hypot(a.x() - b.x(), a.y() - b.y()); }

}  // namespace

class TestViewport : public QObject {
  Q_OBJECT
 private slots:
  void fitCentresTheWholeDrawing() {
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(2'000, 400));
    view.fit();
    QCOMPARE(view.zoom(), 0.4);
    QCOMPARE(view.toView(QRectF(0, 0, 2'000, 400)), QRectF(0, 220, 800, 160));
    QVERIFY(view.isFitted());
    QVERIFY(view.visibleArea().contains(QRectF(0, 0, 2'000, 400)));
  }

  void fitNeverEnlarges() {
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(100, 50));
    view.fit();
    QCOMPARE(view.zoom(), 1.0);
    QCOMPARE(view.offset(), QPointF(350, 275));
  }

  void withoutADrawingNothingZooms() {
    Viewport view;
    view.setWindow({800, 600});
    view.fit();
    view.zoomAt(3, {10, 10});
    QCOMPARE(view.zoom(), 1.0);
    view.setContent(QSizeF(0, 0));
    view.fit();
    QCOMPARE(view.zoom(), 1.0);
  }

  void pointsMapThereAndBack() {
    const std::uint64_t seed = cleave::test::seed();
    std::mt19937_64 random(seed);
    const auto upTo = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
    for (std::uint64_t round = 0, rounds = cleave::test::rounds(2'000); round < rounds; ++round) {
      Viewport view;
      view.setWindow({1 + upTo(2'000), 1 + upTo(1'500)});
      view.setContent(QSizeF(1 + upTo(30'000), 1 + upTo(30'000)));
      view.fit();
      view.zoomAt(upTo(6), {upTo(2'000), upTo(1'500)});
      view.panBy({upTo(500) - 250, upTo(500) - 250});
      const QPointF world(upTo(30'000), upTo(30'000));
      const QPointF back = view.toWorld(view.toView(world));
      QVERIFY2(distance(back, world) < 1e-6, qPrintable(QStringLiteral("seed %1, round %2").arg(seed).arg(round)));
      const QRectF window = view.toView(view.visibleArea());
      QVERIFY(distance(window.topLeft(), {0, 0}) < 1e-6 && std::abs(window.width() - view.window().width()) < 1e-6);
    }
  }

  void zoomKeepsThePointUnderTheCursor() {
    const std::uint64_t seed = cleave::test::seed();
    std::mt19937_64 random(seed);
    const auto upTo = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
    for (std::uint64_t round = 0, rounds = cleave::test::rounds(2'000); round < rounds; ++round) {
      Viewport view = largeView();
      const QPointF at(upTo(800), upTo(600));
      const QPointF before = view.toWorld(at);
      view.zoomAt(0.3 + upTo(5), at);
      // The offset has whole pixels.
      QVERIFY2(distance(view.toView(before), at) < 1,
               qPrintable(QStringLiteral("seed %1, round %2").arg(seed).arg(round)));
      QCOMPARE(view.offset(), QPointF(std::round(view.offset().x()), std::round(view.offset().y())));
      QVERIFY(!view.isFitted());
    }
  }

  void zoomHasLimits() {
    Viewport view = largeView();
    view.zoomAt(100, {});
    QCOMPARE(view.zoom(), 6.0);
    view.zoomAt(0, {});
    QCOMPARE(view.zoom(), 0.02);  // half of what fits
  }

  void theDrawingStaysInReach() {
    const std::uint64_t seed = cleave::test::seed();
    std::mt19937_64 random(seed);
    const auto upTo = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
    for (std::uint64_t round = 0, rounds = cleave::test::rounds(2'000); round < rounds; ++round) {
      Viewport view = largeView();
      view.panBy({upTo(60'000) - 30'000, upTo(60'000) - 30'000});
      const QRectF drawing = view.toView(QRectF(0, 0, 20'000, 10'000));
      const QRectF seen = drawing.intersected(QRectF({0, 0}, view.window()));
      QVERIFY2(seen.width() >= kReach && seen.height() >= kReach,
               qPrintable(QStringLiteral("seed %1, round %2").arg(seed).arg(round)));
    }
  }

  void aFittedViewFollowsTheWindowUntilTheUserMovesIt() {
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(2'000, 400));
    view.fit();
    view.setWindow({400, 600});
    view.adapt();
    QCOMPARE(view.zoom(), 0.2);
    view.panBy({10, 0});
    view.setWindow({800, 600});
    view.adapt();
    QCOMPARE(view.zoom(), 0.2);
  }

  void aStillViewIgnoresTheWindow() {
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(2'000, 400));
    view.fit();
    const QPointF offset = view.offset();
    view.setStill(true);
    view.setWindow({400, 300});
    view.adapt();
    QCOMPARE(view.zoom(), 0.4);
    QCOMPARE(view.offset(), offset);
  }

  void aTallDrawingShowsItsTopOrTheFocus() {
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(1'000, 100'000));
    view.fitReadable();
    QCOMPARE(view.zoom(), 0.8);
    QCOMPARE(view.offset(), QPointF(0, 0));
    const QRectF focus(100, 50'000, 200, 60);
    view.fitReadable(focus);
    QVERIFY(view.visibleArea().contains(focus));
  }

  void scrollingMovesAsLittleAsPossible() {
    Viewport view = largeView();
    const QPointF before = view.offset();
    const QRectF seen(view.toWorld({100, 100}), QSizeF(50, 50));
    view.scrollIntoView(seen);
    QCOMPARE(view.offset(), before);
    const QRectF below(view.toWorld({100, 590}), QSizeF(50, 50));
    view.scrollIntoView(below);
    QCOMPARE(view.offset() - before, QPointF(0, -80));  // its bottom, and a margin of 40
    const QRectF distant(18'000, 500, 50, 50);
    view.scrollIntoView(distant);
    QVERIFY(distance(view.toView(distant).center(), {400, 300}) < 1);
  }

  void showEnlargesOnlyAFit() {
    const QRectF box(500, 500, 100, 40);
    Viewport view;
    view.setWindow({800, 600});
    view.setContent(QSizeF(20'000, 10'000));
    view.fit();
    view.show(box);
    QCOMPARE(view.zoom(), 0.8);
    view.zoomAt(0.05, {});
    view.show(box);
    QCOMPARE(view.zoom(), 0.05);
  }
};

QTEST_GUILESS_MAIN(TestViewport)
#include "tst_viewport.moc"
