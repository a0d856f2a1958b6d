// Limits of the optimal engine: budgets, slack, and sums beyond 64 bits.
#include "solve/optimal/eliminated.h"
#include "tests/support/brute_force.h"
#include "tests/support/optimal_support.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

/// The order of the steps of a problem in the engine.
std::vector<NodeId> orderOf(const Problem& problem) {
  const optimal::Context context(problem);
  optimal::PricedTable table(std::make_shared<CandidateTable>());
  return optimal::layoutOf(context.pricing(), table).order;
}

bool sameChoice(const Choice& a, const Choice& b) {
  const auto computed = [](const Choice& choice) {
    return choice.computedAs.empty() ? choice.results : choice.computedAs;
  };
  if (a.results != b.results || computed(a) != computed(b) || a.strategy.has_value() != b.strategy.has_value())
    return false;
  if (!a.strategy) return true;
  const rules::LayerStrategy &x = *a.strategy, &y = *b.strategy;
  return x.strategy == y.strategy && x.input == y.input && x.weight == y.weight && x.bias == y.bias &&
         x.before == y.before && x.after == y.after;
}

/// The candidate of a plan at each step of that order.
std::vector<std::size_t> ordinalsOf(const Problem& problem, const Variables& variables,
                                    const std::vector<NodeId>& order, const Solution& solution) {
  std::vector<std::size_t> ordinals;
  for (const NodeId node : order) {
    std::vector<Placement> reads;
    for (const Read& read : variables.reads(node)) reads.push_back(solution.of(read.value));
    const auto open = candidatesOf(problem, variables, node, reads).open;
    const Choice taken = choiceOf(variables, problem, solution, node);
    const auto same =
        std::find_if(open.begin(), open.end(), [&](const Choice& choice) { return sameChoice(choice, taken); });
    ordinals.push_back(static_cast<std::size_t>(same - open.begin()));
  }
  return ordinals;
}

/// The generic device, slowed down by a factor.
DeviceProfile slower(double times) {
  DeviceProfile profile;
  profile.floatFlopsPerSecond /= times;
  profile.memoryBytesPerSecond /= times;
  profile.linkBytesPerSecond /= times;
  profile.linkLatencySeconds *= times;
  return profile;
}

}  // namespace

class TestOptimalBudget : public QObject {
  Q_OBJECT

 private slots:
  /// Among equally fast plans within the budget, the one whose first step comes first in its candidate set.
  void breaksTiesByCandidateOrder() {
    const test::Seeds seeds(1500, 70'000);
    int ties = 0, budgets = 0;
    for (const std::uint64_t seed : seeds) {
      RandomProblem random(seed);
      const auto problem = random.build();
      BruteForce brute(*problem);
      if (!brute.run(5'000) || brute.plans().empty()) continue;
      const bool hasBudget = !random.chance(4);
      if (hasBudget) problem->cost.memoryBudget = brute.plans()[random.number() % brute.plans().size()].bytes;
      const SolveResult result = solved(*problem);
      if (!result.optimum || !result.optimum->isProved()) continue;
      const Variables variables(*problem);
      const auto order = orderOf(*problem);
      std::vector<std::vector<std::size_t>> equal;
      for (const BrutePlan& plan : brute.plans()) {
        if (plan.femtoseconds != result.optimum->cost().femtoseconds() || plan.bytes > problem->cost.budgetBytes())
          continue;
        equal.push_back(ordinalsOf(*problem, variables, order, brute.solutionOf(plan)));
      }
      const auto first = std::min_element(equal.begin(), equal.end());
      QVERIFY2(first != equal.end() && *first == ordinalsOf(*problem, variables, order, *result.solution),
               fmt::format("seed {}", seed).c_str());
      ties += equal.size() > 1;
      budgets += equal.size() > 1 && hasBudget;
    }
    qInfo("%d ties, %d of them under a budget", ties, budgets);
    QVERIFY(!seeds.isFull() || budgets > 20);
  }

  /// The lower bound of a step never exceeds the transient peak of a plan with it. Usually the bound of one step equals
  /// the peak.
  void theBoundOfAStepNeverExceedsThePeak() {
    const test::Seeds seeds(500, 90'000);
    int plans = 0, reached = 0;
    for (const std::uint64_t seed : seeds) {
      RandomProblem random(seed);
      const auto problem = random.build();
      BruteForce brute(*problem);
      if (!brute.run(2'000)) continue;
      const Variables variables(*problem);
      const CostModel model(*problem, variables);
      for (const BrutePlan& plan : brute.plans()) {
        const Solution solution = brute.solutionOf(plan);
        std::int64_t most = 0;
        for (const NodeId node : variables.deciders()) {
          std::vector<Placement> reads;
          for (const Read& read : variables.reads(node)) reads.push_back(solution.of(read.value));
          const std::int64_t least =
              model.leastTransient(node, choiceOf(variables, *problem, solution, node), reads).totalWith(0);
          QVERIFY2(least <= plan.bytes - plan.additiveBytes,
                   fmt::format("seed {}: the bound of node {} is {}, above {}\n{}", seed, node.raw(), least,
                               plan.bytes - plan.additiveBytes, graph::toText(*problem->graph))
                       .c_str());
          most = std::max(most, least);
        }
        ++plans;
        reached += most == plan.bytes - plan.additiveBytes;
      }
    }
    qInfo("%d plans; the bound of one step equals the peak of %d", plans, reached);
    QVERIFY(!seeds.isFull() || (plans > 1000 && reached * 5 > plans));
  }

  /// Under a budget that binds, the smallest regret of a layer equals the extra cost of a plan that must use another
  /// strategy.
  void regretsEqualTheCostOfPinnedPlans_data() {
    QTest::addColumn<int>("sequence");
    QTest::addColumn<bool>("isTraining");
    test::Sample sample;
    for (const int sequence : {0, 2}) {
      for (const bool isTraining : {false, true}) {
        if (sample.takesNext())
          QTest::addRow("sequence %d, %s", sequence, isTraining ? "training" : "inference") << sequence << isTraining;
      }
    }
  }
  void regretsEqualTheCostOfPinnedPlans() {
    QFETCH(int, sequence);
    QFETCH(bool, isTraining);
    auto problem = llama({.layers = 4}, 2, static_cast<rules::SequenceParallel>(sequence));
    problem->cost.profile = slowLink();
    problem->cost.isTraining = isTraining;
    problem->cost.slackPercent = 0;
    const auto front = solved(*problem).optimum->front();
    QVERIFY(front && front->points.size() > 4);
    int compared = 0;
    test::Sample sample;
    for (const std::size_t part : {1, 2, 3}) {
      if (!sample.takesNext()) continue;
      problem->cost.memoryBudget = front->points[front->points.size() * part / 4].bytes;
      const SolveResult result = solved(*problem);
      QVERIFY(result.optimum);
      std::vector<NodeId> layers;
      for (const NodeId node : idRange<NodeId>(problem->graph->nodes.size())) {
        if (result.solution->strategies[node.index()] && graph::layerShape(*problem->graph, node)->weight.isValid())
          layers.push_back(node);
      }
      const auto smallest = result.optimum->smallestRegrets(layers);
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto taken = *result.solution->strategies[layers[i].index()];
        Problem other = *problem;
        // Strategies that differ only in their input share a name. So a pin can exclude the strategy only if its name
        // is unique.
        const auto offered = rules::layerStrategies(*problem->graph, layers[i],
                                                    *graph::layerShape(*problem->graph, layers[i]), problem->context)
                                 .offered;
        const auto same = std::count_if(offered.begin(), offered.end(),
                                        [&](const auto& option) { return option.strategy == taken.strategy; });
        if (same != 1 || smallest[i].kind == SmallestRegret::Kind::NotKnown) continue;
        other.pins.push_back(*Pin::parse(
            fmt::format("{}!={}", graph::layerName(*problem->graph, layers[i]), rules::toText(taken.strategy))));
        other.pins.back().strategies = {taken.strategy};
        const SolveResult forced = solved(other);
        if (forced.optimum && !forced.optimum->isProved()) continue;
        ++compared;
        QCOMPARE(forced.optimum != nullptr, smallest[i].kind == SmallestRegret::Kind::Costs);
        if (forced.optimum)
          QCOMPARE(forced.optimum->cost().femtoseconds() - result.optimum->cost().femtoseconds(), smallest[i].extra);
      }
    }
    qInfo("%d layers", compared);
    QVERIFY(!sample.isFull() || compared > 20);
  }

  void handlesVerySlowDevices_data() {
    QTest::addColumn<double>("times");
    QTest::addColumn<bool>("isTraining");
    test::Sample sample;
    for (const bool isTraining : {true, false}) {
      for (const double times : {1e18, 1e15, 1e12, 1e9}) {
        if (sample.takesNext())
          QTest::addRow("%.0e, %s", times, isTraining ? "training" : "inference") << times << isTraining;
      }
    }
  }
  void handlesVerySlowDevices() {
    QFETCH(double, times);
    QFETCH(bool, isTraining);
    auto problem = llama({.layers = 5}, 2);
    problem->cost.profile = slower(times);
    problem->cost.isTraining = isTraining;
    const auto sink = makeCountingSink();
    const auto reference = solve::solve(*problem, Engine::Reference, *sink);
    const SolveResult result = solved(*problem);
    QVERIFY(result.outcome == Outcome::Solved && result.optimum);
    QVERIFY(result.engine == Engine::Optimal);
    QVERIFY(result.optimum->isProved());
    QVERIFY(result.optimum->fastest().femtoseconds() <= solve::costOf(*problem, *reference->solution).femtoseconds());
    QVERIFY(static_cast<double>(result.optimum->cost().femtoseconds()) > times * 1e6);
    QCOMPARE(listed(*result.optimum, 3).size(), std::size_t(3));
    const auto front = result.optimum->front();
    QVERIFY(front.has_value() && !front->points.empty());
    // A budget that binds is kept, one below the minimum has no plan, and the result comes from this engine.
    problem->cost.memoryBudget = front->points.back().bytes;
    const SolveResult tight = solved(*problem);
    QVERIFY(tight.solution && tight.engine == Engine::Optimal);
    QVERIFY(tight.optimum->cost().bytes() <= *problem->cost.memoryBudget);
    problem->cost.memoryBudget = front->points.back().bytes / 2;
    const SolveResult none = solved(*problem);
    QVERIFY(none.outcome == Outcome::NoSolution);
    QVERIFY(none.core.constraints.size() == 1 && none.core.constraints[0].kind == ConstraintKind::Budget);
  }

  /// With equal blocks and a slow link, the slack saves memory block by block and never exceeds its time.
  void slackSavesMemory() {
    auto problem = llama({.layers = 8}, 2);
    problem->cost.profile = slowLink();
    problem->cost.slackPercent = 0;
    const PlanCost fastest = solved(*problem).optimum->cost();
    PlanCost before = fastest;
    int steps = 0;
    for (const double slack : {0.5, 2.0, 10.0, 50.0, 200.0}) {
      problem->cost.slackPercent = slack;
      const SolveResult result = solved(*problem);
      const PlanCost& cost = result.optimum->cost();
      QVERIFY(result.optimum->isProved());
      QVERIFY(result.optimum->fastest() == fastest);
      QVERIFY(cost.femtoseconds() <= problem->cost.slowest(fastest.femtoseconds()));
      QVERIFY(cost.additiveBytes() <= before.additiveBytes() && cost.bytes() <= fastest.bytes());
      steps += cost.additiveBytes() < before.additiveBytes();
      before = cost;
      // The plan fits its own bytes as the budget.
      problem->cost.memoryBudget = cost.bytes();
      QVERIFY(solved(*problem).optimum->cost().bytes() <= cost.bytes());
      problem->cost.memoryBudget.reset();
    }
    QVERIFY(steps >= 2);
  }

  void readsAndWritesSlack() {
    QCOMPARE(parseSlack("1"), std::optional(1.0));
    QCOMPARE(parseSlack("0"), std::optional(0.0));
    QCOMPARE(parseSlack("0.5 %"), std::optional(0.5));
    QCOMPARE(parseSlack("10000%"), std::optional(10'000.0));
    for (const char* wrong : {"", "-1", "nan", "inf", "1e9", "1x", "%", "one"}) QVERIFY2(!parseSlack(wrong), wrong);
    QCOMPARE(slackText(0.5), std::string("0.5 %"));
    CostSettings cost;
    cost.slackPercent = 1;
    QVERIFY(cost.slowest(Femtoseconds(199)) == 200);
    QVERIFY(cost.slowest(Femtoseconds(99)) == 99);
  }
};

QTEST_GUILESS_MAIN(TestOptimalBudget)
#include "tst_optimal_budget.moc"
