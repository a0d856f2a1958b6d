/// What rounding explains, and what it does not.
#include "pipeline/rounding.h"

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

  /// A tolerance without regard to size would refuse the first and pass the second.
  void whatIsAllowedFollowsTheSize() {
    const Rounding rounding{.unit = std::ldexp(1, -19)};
    QVERIFY(rounding.allowed(83, 30) > 2e-4);
    QVERIFY(rounding.allowed(1e-3, 1e-3) < 1e-8);
  }

  void theRulerWidensIt() {
    const Rounding plain{.unit = 0, .ruler = 1e-3, .elements = 1'000'000};
    QVERIFY(std::abs(plain.allowed(5, 5) - 3.007e-3) < 1e-6);
    const Rounding single{.unit = 0, .ruler = 1e-3, .elements = 1};
    QVERIFY(std::abs(single.allowed(5, 5) - 1e-2) < 1e-9);
  }

  /// bfloat16 inside of a float32 model.
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
