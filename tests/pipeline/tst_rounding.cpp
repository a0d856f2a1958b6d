/// The differences that rounding allows.
#include "pipeline/compare/rounding.h"

#include <QTest>

#include <cmath>

using namespace cleave;
using namespace cleave::pipeline;

class TestRounding : public QObject {
  Q_OBJECT
 private slots:
  void unitsFollowTheType() {
    QCOMPARE(roundingUnit(graph::DType::Float32), std::ldexp(1, -19));
    QCOMPARE(roundingUnit(graph::DType::BFloat16), std::ldexp(1, -7));
    QCOMPARE(roundingUnit(graph::DType::Int64), 0.0);
    QCOMPARE(roundingUnit(graph::DType::BFloat16, launch::Backend::Nccl, 5), 2 * std::ldexp(1, -7));
    QCOMPARE(roundingUnit(graph::DType::BFloat16, launch::Backend::Gloo, 5), std::ldexp(1, -7));
  }

  /// A tolerance that ignores the size would refuse the first difference and accept the second.
  void whatIsAllowedFollowsTheSize() {
    const Rounding rounding{.unit = std::ldexp(1, -19)};
    QVERIFY(rounding.allowed(83, 30) > 2e-4);
    QVERIFY(rounding.allowed(1e-3, 1e-3) < 1e-8);
  }

  void theRulerWidensIt() {
    const Rounding plain{.unit = 0, .moves = Moves{1e-3}, .elements = 1'000'000};
    QVERIFY(std::abs(plain.allowed(5, 5) - 3.007e-3) < 1e-6);
    const Rounding single{.unit = 0, .moves = Moves{1e-3}, .elements = 1};
    QVERIFY(std::abs(single.allowed(5, 5) - 1e-2) < 1e-9);
  }

  /// Fill of a padded vocabulary or of masked scores does not count for the size of the tensor.
  void fillDoesNotCountForTheSize() {
    for (const double fill : {-1e9, -3.4e38, 1e4}) {
      Magnitudes magnitudes;
      for (int i = 0; i < 64; ++i) magnitudes.add(i % 4 == 3 ? fill : 1 + i % 3);
      QVERIFY2(std::abs(magnitudes.size() - std::sqrt(14.0 / 3)) < 1e-9, qPrintable(QString::number(fill)));
    }
    Magnitudes spread;  // without a gap, all elements are data
    for (int i = 0; i < 40; ++i) spread.add(std::ldexp(1, i));
    QVERIFY(spread.size() > std::ldexp(1, 36));
    Magnitudes even;
    for (const double x : {3.0, -4.0, 0.0, HUGE_VAL, std::nan("")}) even.add(x);
    QVERIFY(std::abs(even.size() - std::sqrt(25.0 / 3)) < 1e-9);
  }

  /// If one row goes to another expert, its change does not count for the other rows.
  void jumpsDoNotCountForTheRuler() {
    MoveFinder finder(std::ldexp(1, -19));
    const auto pass = [&](auto&& take) {
      for (int i = 0; i < 1000; ++i) take(1.0 + i * 1e-3, 1.0 + i * 1e-3 + (i < 20 ? 2 : 1e-6 * (i % 5)));
    };
    pass([&](double a, double b) { finder.look(a, b); });
    pass([&](double a, double b) { finder.measure(a, b); });
    const Moves& moves = finder.found();
    QCOMPARE(moves.jumps, 20);
    QVERIFY(moves.ruler < 5e-6 && moves.largestJump == 2);
    const Rounding rounding{.unit = std::ldexp(1, -19), .moves = moves, .elements = 1000};
    QVERIFY(rounding.allowed(1, 1) < 1e-4);
    QVERIFY(rounding.mayJump(3) && !rounding.mayJump(10));
    QVERIFY(moves.maxJumps() >= 60 && moves.maxJumps() < 100);
    QCOMPARE(Moves{}.maxJumps(), 0);
  }

  /// Few indices and conditions move, and each of these moves is a jump.
  void indicesJumpOrStay() {
    MoveFinder finder(0);
    const auto pass = [&](auto&& take) {
      for (int i = 0; i < 100; ++i) take(i % 2, i == 7 ? 1 - i % 2 : i % 2);
    };
    pass([&](double a, double b) { finder.look(a, b); });
    pass([&](double a, double b) { finder.measure(a, b); });
    QCOMPARE(finder.found().jumps, 1);
    QCOMPARE(finder.found().ruler, 0.0);
    QCOMPARE(finder.found().maxJumps(), 10);
  }

  /// In deep models in half precision, all elements move by some percent. These moves are not jumps.
  void noiseDoesNotJump() {
    MoveFinder finder(std::ldexp(1, -7));
    const auto pass = [&](auto&& take) {
      for (int i = 0; i < 500; ++i) take(std::sin(i), std::sin(i) + 0.05 * std::cos(7 * i));
    };
    pass([&](double a, double b) { finder.look(a, b); });
    pass([&](double a, double b) { finder.measure(a, b); });
    QCOMPARE(finder.found().jumps, 0);
    QVERIFY(finder.found().ruler > 0.049);
  }

  /// A float32 model that computes partly in bfloat16.
  void theCoarsestTypeOnTheWayCounts() {
    const auto graph = graph::parseGraph(
        "graph g\nroot M\nx: f32[4,8] = input\nw: f32[6,8] = parameter\nv: f32[4,8] = aten::relu(x)\n"
        "c: bf16[6,8] = aten::_to_copy(w, :bf16)\ny: bf16[4,8] = aten::_to_copy(v, :bf16)\n"
        "z: bf16[4,6] = aten::linear(y, c, None)\nf: f32[4,6] = aten::_to_copy(z, :f32)\nreturn f=f, v=v\n");
    QVERIFY2(graph, graph ? "" : graph.error().message.c_str());
    const auto types = coarsestTypes(*graph);
    QCOMPARE(types[graph->findValue("f").index()], graph::DType::BFloat16);
    QCOMPARE(types[graph->findValue("v").index()], graph::DType::Float32);
    QCOMPARE(coarsestType(*graph), graph::DType::BFloat16);
  }
};

QTEST_GUILESS_MAIN(TestRounding)
#include "tst_rounding.moc"
