/// The optimal engine shares data between equal places and between solves. This changes no result.
#include "solve/checker.h"
#include "solve/optimal/eliminated.h"
#include "solve/optimal/tables.h"
#include "tests/support/optimal_support.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

/// A path found with and without sharing levels between equal places.
struct Unfolded {
  std::unique_ptr<Optimum> optimum;
  PlanCost cost;
  Solution solution;
};
Unfolded unfolded(const Problem& problem, bool isShared) {
  const auto context = std::make_shared<const optimal::Context>(problem);
  optimal::PricedTable table(std::make_shared<CandidateTable>());
  LevelStore<optimal::Level> store;
  store.isShared = isShared;
  optimal::Elimination elimination;
  const auto outcome = optimal::unfold(context->pricing(), table, store, {}, elimination);
  if (outcome != optimal::Unfolding::Done) qFatal("no plan");
  auto optimum = std::make_unique<optimal::Eliminated>(context, std::move(elimination));
  const optimal::Found& found = optimum->find({});
  Solution solution = optimum->solutionOf(found.path);
  return {std::move(optimum), found.cost, std::move(solution)};
}

std::vector<NodeId> stepsOf(const Problem& problem) {
  const Variables variables(problem);
  return {variables.deciders().begin(), variables.deciders().end()};
}

}  // namespace

class TestOptimalSharing : public QObject {
  Q_OBJECT

 private slots:
  void foldingDoesNotChangeResults_data() {
    QTest::addColumn<int>("sequence");
    QTest::addColumn<bool>("isTraining");
    QTest::addColumn<bool>("isTied");
    Sample sample;
    for (int sequence = 0; sequence < 3; ++sequence) {
      for (const bool isTraining : {false, true}) {
        for (const bool isTied : {false, true}) {
          if (!sample.takesNext()) continue;
          QTest::addRow("sequence %d, training %d, tied %d", sequence, isTraining, isTied)
              << sequence << isTraining << isTied;
        }
      }
    }
  }
  void foldingDoesNotChangeResults() {
    QFETCH(int, sequence);
    QFETCH(bool, isTraining);
    QFETCH(bool, isTied);
    auto problem = llama({.layers = 5, .isTied = isTied}, 2, static_cast<rules::SequenceParallel>(sequence));
    problem->cost.isTraining = isTraining;
    problem->cost.profile = slowLink();
    const Unfolded folded = unfolded(*problem, true), plain = unfolded(*problem, false);
    QVERIFY(folded.optimum->stats().foldedSteps > plain.optimum->stats().foldedSteps);
    QCOMPARE(plain.optimum->stats().foldedSteps, 0u);
    QVERIFY(folded.cost == plain.cost);
    QVERIFY(sameSolution(folded.solution, plain.solution));
    const auto steps = stepsOf(*problem);
    QCOMPARE(folded.optimum->smallestRegrets(steps), plain.optimum->smallestRegrets(steps));
    const auto front = folded.optimum->front(), plainFront = plain.optimum->front();
    QVERIFY(front && plainFront);
    QCOMPARE(front->isExact, plainFront->isExact);
    QVERIFY(front->points.size() > 2);
    QCOMPARE(front->points.size(), plainFront->points.size());
    for (std::size_t i = 0; i < front->points.size(); ++i) {
      QCOMPARE(front->points[i].femtoseconds, plainFront->points[i].femtoseconds);
      QCOMPARE(front->points[i].bytes, plainFront->points[i].bytes);
    }
  }

  void foldingDoesNotChangeResultsUnderABudget() {
    auto problem = llama({.layers = 6}, 2);
    problem->cost.profile = slowLink();
    problem->cost.memoryBudget = 1ll << 50;
    const Unfolded widest = unfolded(*problem, false);
    const auto front = solved(*problem).optimum->front();
    QVERIFY(front.has_value());
    QVERIFY(front->points.size() > 8);
    for (std::size_t i = 0; i < front->points.size(); i += 1 + front->points.size() / 8) {
      const auto plan = widest.optimum->planAt(front->points[i]);
      QVERIFY(plan.has_value());
      QVERIFY(check(*problem, *plan).empty());
      const PlanCost cost = solve::costOf(*problem, *plan);
      QCOMPARE(cost.femtoseconds(), front->points[i].femtoseconds);
      QCOMPARE(cost.bytes(), front->points[i].bytes);
    }
    // Each bound must hold for the plan that the other found.
    const std::int64_t most = widest.cost.bytes(), least = front->points.back().bytes;
    for (const int part : {1, 3, 5, 7}) {
      problem->cost.memoryBudget = least + (most - least) * part / 8;
      const Unfolded folded = unfolded(*problem, true), plain = unfolded(*problem, false);
      for (const Unfolded* each : {&folded, &plain}) {
        QVERIFY(check(*problem, each->solution).empty());
        QVERIFY(each->cost.bytes() <= *problem->cost.memoryBudget);
        QVERIFY(each->optimum->lowerBoundFs() <= std::min(folded.cost.femtoseconds(), plain.cost.femtoseconds()));
      }
    }
  }

  void aCacheDoesNotChangeResults() {
    auto problem = llama({.layers = 2}, 2);
    problem->cost.profile = slowLink();
    SolveCache cache;
    Sample sample;
    const std::vector<std::vector<std::string>> pins{
        {}, {"*.q_proj=column"}, {"model.layers.1.mlp.*=replicated"}, {"lm_head!=column", "*.q_proj=column"}, {}};
    for (const auto& texts : pins) {
      for (const std::int64_t budget :
           {std::int64_t(1) << 40, std::int64_t(400'000), std::int64_t(300'000), std::int64_t(1)}) {
        if (!sample.takesNext()) continue;
        problem->pins.clear();
        for (const std::string& text : texts) problem->pins.push_back(*Pin::parse(text));
        problem->cost.memoryBudget = budget;
        const SolveResult warm = solved(*problem, &cache), cold = solved(*problem);
        QVERIFY(warm.outcome == cold.outcome);
        QCOMPARE(warm.stats.events, cold.stats.events);
        QCOMPARE(warm.core.constraints, cold.core.constraints);
        if (!warm.solution) continue;
        QVERIFY(sameSolution(*warm.solution, *cold.solution));
        QVERIFY(warm.optimum->cost() == cold.optimum->cost());
        QCOMPARE(warm.optimum->smallestRegrets(stepsOf(*problem)), cold.optimum->smallestRegrets(stepsOf(*problem)));
      }
    }
    problem->context.worldSize = 4;
    problem->cost.memoryBudget.reset();
    const SolveResult warm = solved(*problem, &cache), cold = solved(*problem);
    QVERIFY(warm.solution && cold.solution);
    QVERIFY(sameSolution(*warm.solution, *cold.solution));
  }

  void aResultOutlivesItsCache() {
    std::shared_ptr<const Optimum> optimum;
    auto problem = llama({}, 2);
    {
      SolveCache cache;
      optimum = solved(*problem, &cache).optimum;
      problem->pins.push_back(*Pin::parse("lm_head=replicated"));
      solved(*problem, &cache);
    }
    const ValueId value = problem->graph->outputs[0].value;
    QVERIFY(optimum->regrets(value)->size() > 1);
    QVERIFY(!optimum->front()->points.empty());
  }
};

QTEST_GUILESS_MAIN(TestOptimalSharing)
#include "tst_optimal_sharing.moc"
