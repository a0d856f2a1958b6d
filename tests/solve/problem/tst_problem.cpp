#include "solve/checker.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

class TestProblem : public QObject {
  Q_OBJECT
 private slots:
  /// A value with as many copies as ranks violates a pin that forbids replicated values. It does not satisfy a pin that
  /// demands them.
  void copiesOnEveryRankCountAsReplicated() {
    const auto pin = [](const char* text) { return *Pin::parse(text); };
    const auto placed = [](const char* text) { return *Placement::parse(text); };
    QVERIFY(!pin("a!=R").admits(placed("R"), 4));
    QVERIFY(!pin("a!=R").admits(placed("S(1,x4)"), 4));
    QVERIFY(pin("a!=R").admits(placed("S(1,x2)"), 4));
    QVERIFY(pin("a!=S(1)").admits(placed("S(1,x4)"), 4));
    QVERIFY(pin("a=R").admits(placed("R"), 4));
    QVERIFY(!pin("a=R").admits(placed("S(1,x4)"), 4));
  }

  void findsTheTargetsOfPins() {
    const auto graph = test::llamaGraph();
    QCOMPARE(targetsOf(*Pin::parse("model.layers.*.q_proj=column"), *graph).layers.size(), std::size_t{2});
    QCOMPARE(targetsOf(*Pin::parse("linear_0=row"), *graph).layers.size(), std::size_t{1});
    QCOMPARE(targetsOf(*Pin::parse("linear_*=R"), *graph).values.size(), std::size_t{15});
    // A layer's name means its result if no value has that name.
    QCOMPARE(targetsOf(*Pin::parse("lm_head=R"), *graph).values.size(), std::size_t{1});
  }

  void appliesPins_data() {
    QTest::addColumn<QString>("pin");
    for (const char* pin :
         {"lm_head=replicated", "model.layers.*.mlp.*=replicated", "model.layers.1.self_attn.q_proj!=column", "add_3=R",
          "model.layers.0.mlp.up_proj.weight=R", "lm_head=S(2)"}) {
      QTest::newRow(pin) << pin;
    }
  }
  void appliesPins() {
    QFETCH(QString, pin);
    const auto problem = test::problemOf(test::llamaGraph(), 2, {pin.toStdString()});
    const auto recorded = test::record(problem);
    QCOMPARE(recorded.result.outcome, Outcome::Solved);
    const auto violations = check(*problem, *recorded.result.solution);
    QVERIFY2(violations.empty(), violations.empty() ? "" : violations.front().c_str());
  }
};

QTEST_APPLESS_MAIN(TestProblem)
#include "tst_problem.moc"
