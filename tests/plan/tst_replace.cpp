#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestReplace : public QObject {
  Q_OBJECT
 private slots:
  void oneRankRunsTheAtenGraph() {
    const Plan plan = planned(requestFor(kDecoder, context(1), {}));
    QCOMPARE(programText(*plan.program), programText(*plan.graph));
    QVERIFY(plan.collectives.empty());
  }

  void refusesASolutionThatDoesNotFit() {
    PlanRequest request = requestFor(kMlp, context(2), kMlpSplit);
    solve::Solution solution = *request.solution;
    solution.placements[0] = Placement::split(0);
    request.solution = std::make_shared<const solve::Solution>(solution);
    const auto plan = makePlan(
        request, explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get()));
    QVERIFY(!plan.has_value());
    QVERIFY2(plan.error().message.starts_with("x cannot be S(0) on 2 ranks: "), plan.error().message.c_str());
  }
};

QTEST_APPLESS_MAIN(TestReplace)
#include "tst_replace.moc"
