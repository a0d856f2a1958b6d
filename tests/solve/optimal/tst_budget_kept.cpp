// If a plan is known to fit a budget, the optimal engine finds one that fits it and is not slower.
#include "tests/support/optimal_support.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;
using rules::SequenceParallel;

namespace {

/// True if the engine finds no plan for one byte less than the smallest point. If the end of the front is known, it
/// must also prove this.
bool endsAsItSays(Problem problem, const Optimum::Front& front) {
  problem.cost.memoryBudget = front.points.back().bytes - 1;
  const Recorded below = record(std::make_shared<Problem>(problem), {}, {}, Engine::Optimal);
  const bool isKnown = !below.result.optimum && below.result.isProved;
  const EventType last = eventsOf(*below.trace).back().type;
  return isKnown == front.isEndKnown && last == (isKnown ? EventType::Exhausted : EventType::Ended) &&
         noSolutionText(below.result) == (isKnown ? "There is no solution" : "No solution was found");
}

}  // namespace

class TestBudgetKept : public QObject {
  Q_OBJECT

 private slots:
  void findsAPlanThatIsKnownToFit_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("sequence");
    for (const int ranks : {2, 4, 8}) {
      for (const int sequence : {16, 128}) QTest::addRow("%d ranks, %d tokens", ranks, sequence) << ranks << sequence;
    }
  }
  void findsAPlanThatIsKnownToFit() {
    QFETCH(int, ranks);
    QFETCH(int, sequence);
    auto problem = llama(
        {.layers = 2, .hidden = 64, .heads = 8, .kvHeads = 4, .intermediate = 128, .vocab = 256, .sequence = sequence},
        ranks, rules::SequenceParallel::Off);
    problem->cost.slackPercent = 0;
    problem->cost.profile.linkLatencySeconds = 1e-5;
    const auto sink = makeCountingSink();
    const auto reference = solve::solve(*problem, Engine::Reference, *sink);
    const PlanCost known = costOf(*problem, *reference->solution);
    Sample sample;
    for (std::int64_t more = 0; more <= 64'000; more += 4'000) {
      if (!sample.takesNext()) continue;
      problem->cost.memoryBudget = known.bytes() + more;
      const SolveResult result = solved(*problem);
      const std::string where = fmt::format("budget {}, where a plan needs {} and takes {}",
                                            *problem->cost.memoryBudget, known.bytes(), known.femtoseconds());
      QVERIFY2(result.optimum, (where + ": " + result.core.text()).c_str());
      QVERIFY2(result.optimum->cost().bytes() <= *problem->cost.memoryBudget, where.c_str());
      QVERIFY2(result.optimum->cost().femtoseconds() <= known.femtoseconds(), where.c_str());
    }
  }

  /// With its bytes as the budget, the engine finds the plan of the point and proves it.
  void findsThePlanOfEachPointOfTheFront_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<SequenceParallel>("sequence");
    for (const int ranks : {2, 4, 8}) {
      QTest::addRow("%d ranks", ranks) << ranks << SequenceParallel::Off;
      QTest::addRow("%d ranks, on the sequence", ranks) << ranks << SequenceParallel::Auto;
    }
  }
  void findsThePlanOfEachPointOfTheFront() {
    QFETCH(int, ranks);
    QFETCH(SequenceParallel, sequence);
    const auto problem =
        llama({.layers = 2, .hidden = 64, .heads = 8, .kvHeads = 4, .intermediate = 128, .vocab = 256, .sequence = 128},
              ranks, sequence);
    problem->cost.slackPercent = 0;
    problem->cost.profile.linkLatencySeconds = 1e-5;
    const auto front = solved(*problem).optimum->front();
    QVERIFY(front.has_value());
    QVERIFY(front->isExact);
    QVERIFY(front->points.size() > 1);
    Sample sample;
    for (const ParetoPoint& point : front->points) {
      if (!sample.takesNext()) continue;
      problem->cost.memoryBudget = point.bytes;
      const SolveResult result = solved(*problem);
      const std::string where = fmt::format("budget {}", point.bytes);
      QVERIFY2(result.optimum && result.optimum->isProved(), where.c_str());
      QVERIFY2(result.optimum->cost().femtoseconds() == point.femtoseconds, where.c_str());
      QVERIFY2(result.optimum->cost().bytes() == point.bytes, where.c_str());
    }
    QVERIFY(endsAsItSays(*problem, *front));
    QVERIFY(front->isEndKnown);
  }

  /// A plan with more additive bytes may have a lower transient peak. The front reports whether it is proved that no
  /// plan is smaller.
  void reportsWhetherTheEndOfAFrontIsKnown() {
    int known = 0, unknown = 0;
    Sample sample;
    for (const int ranks : {2, 3, 4}) {
      for (const bool isTraining : {false, true}) {
        if (!sample.takesNext()) continue;
        const auto problem = llama({.layers = 2,
                                    .hidden = 576,
                                    .heads = 9,
                                    .kvHeads = 3,
                                    .intermediate = 1536,
                                    .vocab = 49152,
                                    .sequence = 2048},
                                   ranks, SequenceParallel::Auto);
        problem->cost.slackPercent = 0;
        problem->cost.isTraining = isTraining;
        const auto front = solved(*problem).optimum->front();
        QVERIFY(front.has_value());
        QVERIFY2(endsAsItSays(*problem, *front), fmt::format("{} ranks, {}", ranks, isTraining).c_str());
        ++(front->isEndKnown ? known : unknown);
      }
    }
    QVERIFY2(!sample.isFull() || (known > 0 && unknown > 0),
             fmt::format("{} known, {} unknown", known, unknown).c_str());
  }

  /// If heads do not divide, some plans have full heads on one rank. The search must know their memory.
  void provesWhetherASmallModelFits_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<SequenceParallel>("sequence");
    for (const int ranks : {2, 3, 4, 8}) {
      QTest::addRow("%d ranks", ranks) << ranks << SequenceParallel::Off;
      QTest::addRow("%d ranks, on the sequence", ranks) << ranks << SequenceParallel::Auto;
    }
  }
  void provesWhetherASmallModelFits() {
    QFETCH(int, ranks);
    QFETCH(SequenceParallel, sequence);
    int fits = 0, tooLarge = 0;
    Sample sample;
    for (const bool hasLoss : {false, true}) {
      const auto problem = llama({.layers = 1,
                                  .hidden = 80,
                                  .heads = 5,
                                  .kvHeads = 5,
                                  .intermediate = 160,
                                  .vocab = 256,
                                  .sequence = 128,
                                  .hasLoss = hasLoss},
                                 ranks, sequence);
      problem->cost.slackPercent = 0;
      const std::int64_t most = solved(*problem).optimum->cost().bytes();
      for (std::int64_t budget = most; budget > most / 3; budget -= most / 16) {
        if (!sample.takesNext()) continue;
        problem->cost.memoryBudget = budget;
        const SolveResult result = solved(*problem);
        const bool isKnown = result.optimum ? result.optimum->isProved() : result.isProved;
        QVERIFY2(isKnown, fmt::format("budget {}, {}", budget, hasLoss ? "loss" : "no loss").c_str());
        ++(result.optimum ? fits : tooLarge);
      }
    }
    QVERIFY(!sample.isFull() || (fits > 0 && tooLarge > 0));
  }
};

QTEST_APPLESS_MAIN(TestBudgetKept)
#include "tst_budget_kept.moc"
