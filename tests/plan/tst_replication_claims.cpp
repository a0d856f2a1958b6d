// Claims of plans about replicated layers and the fastest way to split them, on random models and under budgets. The
// test tries to refute each claim by solving. tests/support/seeds.h sets the number of models.
#include "plan/text/headline.h"
#include "plan/text/reason_text.h"
#include "tests/plan/verdict_fixture.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"

#include <QTest>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// The plans that split the layer, are not slower than `slowest`, and keep the fewest bytes for the whole step: one per
/// strategy with that minimum; empty if no such plan exists.
std::vector<solve::PlanCost> leanestSplits(const solve::Problem& problem, NodeId node, Femtoseconds slowest) {
  std::vector<solve::PlanCost> leanest;
  for (rules::Strategy form : splitForms(problem, node)) {
    solve::Problem pinned = problem;
    pinned.cost.slackPercent = 0;
    pinned.pins.push_back(pinTo(*problem.graph, node, {form}));
    auto result = solved(pinned, Engine::Optimal);
    if (!result || !weightIsSplit(*problem.graph, *result->solution, node, problem.context.worldSize)) continue;
    const Femtoseconds fastest = result->optimum->cost().femtoseconds();
    if (fastest > slowest) continue;
    pinned.cost.slackPercent = 100 * double(slowest - fastest) / double(fastest);
    result = solved(pinned, Engine::Optimal);
    const solve::PlanCost cost = result->optimum->cost();
    if (!leanest.empty() && cost.additiveBytes() > leanest.front().additiveBytes()) continue;
    if (!leanest.empty() && cost.additiveBytes() < leanest.front().additiveBytes()) leanest.clear();
    leanest.push_back(cost);
  }
  return leanest;
}

/// Checks the extra memory of the smallest split. Empty if `extraBytes` is right.
std::string refutedExtraBytes(const Case& c, const Plan& plan, NodeId node, Femtoseconds slowest,
                              std::int64_t extraBytes) {
  const auto leanest = leanestSplits(c.problem, node, slowest);
  if (leanest.empty()) return ", but no such plan is fast enough";
  const auto isClaimed = [&](const solve::PlanCost& cost) { return cost.bytes() - plan.cost.bytes() == extraBytes; };
  return std::any_of(leanest.begin(), leanest.end(), isClaimed)
             ? ""
             : fmt::format(", but it needs {} more", leanest.front().bytes() - plan.cost.bytes());
}

/// Checks that no split that fits the memory of the fastest plan keeps fewer bytes for the whole step.
std::string refutedNoSaving(const Case& c, const Plan& plan, NodeId node, Femtoseconds slowest) {
  solve::Problem lean = c.problem;
  lean.cost.memoryBudget = std::min(lean.cost.budgetBytes(), plan.fastest->bytes);
  const auto leanest = leanestSplits(lean, node, slowest);
  const bool savesMemory = !leanest.empty() && leanest.front().additiveBytes() < plan.cost.additiveBytes();
  return savesMemory ? fmt::format(", but a split keeps {} bytes less for the whole step",
                                   plan.cost.additiveBytes() - leanest.front().additiveBytes())
                     : "";
}

/// With a slack, a split does not pay if it is too slow, or if it is fast enough but saves no memory.
std::string refutedCost(const Case& c, const Plan& plan, NodeId node, const DoesNotPay& costs,
                        Femtoseconds fastestSplitFs) {
  if (fastestSplitFs - plan.cost.femtoseconds() != costs.extraFs) return ", but its cost is different";
  const Femtoseconds slowest = c.problem.cost.slowest(plan.fastest->femtoseconds);
  if (costs.isFastEnough != (fastestSplitFs <= slowest)) return ", but the slack is different";
  if (!costs.isFastEnough) return costs.extraFs > 0 ? "" : ", but it is faster";
  if (costs.extraBytes == 0) return refutedNoSaving(c, plan, node, slowest);
  return refutedExtraBytes(c, plan, node, slowest, costs.extraBytes);
}

/// Checks claims under a binding budget: the memory of faster plans, and of plans within the budget.
std::string refutedUnderBudget(const Case& c, const Plan& plan, NodeId node, const DoesNotPay& costs) {
  const Femtoseconds fs = plan.cost.femtoseconds(), slowest = c.problem.cost.slowest(plan.fastest->femtoseconds);
  const auto any = fastestSplit(c.problem, node), within = fastestSplitWithin(c.problem, node);
  if (!any) return ", but no pin splits it";
  const Femtoseconds extra = any->optimum->cost().femtoseconds() - fs;
  const bool isExtraWithin = within && within->optimum->cost().femtoseconds() - fs == costs.extraFs;
  if (costs.isOverBudget && any->optimum->cost().bytes() <= c.problem.cost.budgetBytes())
    return ", but it fits the budget";
  if (costs.extraFs != extra && (costs.isOverBudget || !isExtraWithin)) return ", but its cost is different";
  if (costs.isOverBudget || (costs.isFastEnough && costs.extraBytes == 0))
    return refutedNoSaving(c, plan, node, slowest);
  if (!costs.isFastEnough)
    return within && within->optimum->cost().femtoseconds() <= slowest ? ", but it is fast enough" : "";
  return refutedExtraBytes(c, plan, node, slowest, costs.extraBytes);
}

solve::Problem withAll(solve::Problem problem) {
  problem.pins.clear();
  problem.rulesOff.clear();
  problem.context.candidateSet = rules::CandidateSet::Full;
  problem.context.sequenceParallel = rules::SequenceParallel::Auto;
  return problem;
}

/// True if a plan that may redistribute all values splits it, after `changes`.
bool redistributionSplits(const solve::Problem& problem, NodeId node, const std::vector<solve::Change>& changes = {}) {
  solve::Problem free = problem;
  for (const solve::Change& change : changes) free = *solve::applied(free, change);
  free.redistributable = {"*"};
  return fastestSplit(free, node).has_value();
}

/// "Without redistribution" is right if redistribution allows a split together with the claimed changes, and only then.
std::string refutedCannot(const Case& c, NodeId node, const Cannot& cannot) {
  if (fastestSplit(withAll(c.problem), node)) return ", but other settings split it";
  if (!cannot.isUnlessRedistributed)
    return redistributionSplits(withAll(c.problem), node) ? ", but redistribution splits it" : "";
  if (!redistributionSplits(c.problem, node, cannot.withThat)) return ", but that redistribution does not split it";
  const bool isNeedless = !cannot.withThat.empty() && redistributionSplits(c.problem, node);
  return isNeedless ? ", but redistribution alone splits it" : "";
}

/// Checks if a plan that is as fast and splits the layer fits the budget.
std::string refutedFit(const solve::Problem& problem, NodeId node, Femtoseconds fastest, Femtoseconds now,
                       const NotAskedFor& claim) {
  const BudgetFit fit = claim.fit;
  if (fit == BudgetFit::NotKnown) return {};
  const auto within = fastestSplitWithin(problem, node);
  if (claim.extraWithinFs && (!within || within->optimum->cost().femtoseconds() - now != *claim.extraWithinFs))
    return ", but its cost within the budget is different";
  const bool fits = within && within->optimum->cost().femtoseconds() == fastest;
  if (fits == (fit == BudgetFit::Fits)) return {};
  return fits ? ", but it fits the budget" : ", but no plan as fast fits the budget";
}

/// The wrong part of a reason; empty if the reason is right.
std::string refuted(const Case& c, const Plan& plan, NodeId node, const ReplicationReason& replication) {
  const int ranks = c.problem.context.worldSize;
  const std::string text = graph::layerName(*c.problem.graph, node) + " " + toText(replication);
  if (std::holds_alternative<Split>(replication))
    return weightIsSplit(*plan.graph, *plan.solution, node, ranks) ? "" : text + ", but its weight is replicated";
  if (weightIsSplit(*plan.graph, *plan.solution, node, ranks)) return text + ", but its weight is split";
  const auto fs = plan.cost.femtoseconds();
  const auto here = fastestSplit(c.problem, node);
  if (const auto* cannot = std::get_if<Cannot>(&replication)) {
    if (here) return text + ", but a pin splits it";
    const std::string wrong = refutedCannot(c, node, *cannot);
    return wrong.empty() ? "" : text + wrong;
  }
  if (const auto* costs = std::get_if<DoesNotPay>(&replication)) {
    if (!here) return text + ", but no pin splits it";
    const std::string wrong = refutedCost(c, plan, node, *costs, here->optimum->cost().femtoseconds());
    return wrong.empty() ? "" : text + wrong;
  }
  const auto* setting = std::get_if<NotAskedFor>(&replication);
  if (!setting) return {};
  if (setting->changes.empty() && !here) return text + ", but no pin splits it";
  if (!setting->changes.empty() && here) return text + ", but a pin splits it without these changes";
  solve::Problem changed = c.problem;
  for (const solve::Change& change : setting->changes) changed = *solve::applied(changed, change);
  const auto then = fastestSplit(changed, node);
  if (!then) return text + ", but these changes do not split it";
  const Femtoseconds fastest = then->optimum->cost().femtoseconds();
  if (fastest - fs != setting->extraFs) return text + ", but its cost is different";
  const std::string wrong = refutedFit(changed, node, fastest, fs, *setting);
  return wrong.empty() ? "" : text + wrong;
}

}  // namespace

class TestReplicationClaims : public QObject {
  Q_OBJECT
 private slots:
  void reasonsHoldOnRandomModels() {
    const test::Seeds seeds(500);
    std::array<std::size_t, std::variant_size_v<ReplicationReason>> checked{};
    for (const std::uint64_t seed : seeds) {
      Dice dice(seed);
      const Case c = randomCase(dice);
      const auto result = solved(c.problem, c.engine);
      if (!result) continue;
      const std::string wrong = falseReason(c, planOf(c, *result), dice, checked);
      if (!wrong.empty()) QFAIL(fmt::format("seed {}: {}: {}", seed, describe(c), wrong).c_str());
    }
    // Each reason was checked often enough.
    for (const ReplicationReason& replication : {ReplicationReason(Split{}), ReplicationReason(Cannot{}),
                                                 ReplicationReason(DoesNotPay{}), ReplicationReason(NotAskedFor{})}) {
      QVERIFY2(!seeds.isFull() || checked[replication.index()] * 50 > seeds.count(),
               std::string(kindOf(replication)).c_str());
    }
    QVERIFY2(!seeds.isFull() || m_savesNoMemory > 0, "no layer is replicated because a split saves no memory");
    QVERIFY2(!seeds.isFull() || m_byRedistribution > 0, "redistribution splits no layer");
  }

  /// Engines that ignore the budget report if faster plans fit it.
  void fasterPlansAreComparedWithTheBudget() {
    const test::Seeds seeds(200);
    std::array<std::size_t, std::variant_size_v<ReplicationReason>> checked{};
    m_fits = {};
    for (const std::uint64_t seed : seeds) {
      Dice dice(seed);
      Case c = randomCase(dice);
      if (c.engine == Engine::Optimal) c.engine = Engine::Reference;
      const auto result = solved(c.problem, c.engine);
      if (!result) continue;
      const std::int64_t bytes = costOf(c.problem, *result->solution).bytes();
      c.problem.cost.memoryBudget = bytes * (20 + dice.upTo(100)) / 100;
      const Plan plan = planOf(c, *result);
      const std::string where =
          fmt::format("seed {}: budget {}: {}: ", seed, *c.problem.cost.memoryBudget, describe(c));
      if (const std::string wrong = falseReason(c, plan, dice, checked); !wrong.empty()) QFAIL((where + wrong).c_str());
    }
    QVERIFY2(!seeds.isFull() || (m_fits[0] > 0 && m_fits[1] > 0),
             fmt::format("{} within, {} over", m_fits[0], m_fits[1]).c_str());
    QVERIFY2(!seeds.isFull() || m_within > 0, "no reason names a plan within the budget");
  }

  /// More layers than are solved one by one, on a device with slow collectives. With each point of the Pareto front as
  /// the budget, some layers are replicated.
  void reasonsUnderABudgetHold_data() {
    const test::Rows<double> row("slackPercent");
    row("without slack", 0.0);
    row("with slack", 1.0);
  }
  void reasonsUnderABudgetHold() {
    QFETCH(double, slackPercent);
    Case c;
    c.problem.graph = test::llamaGraph(
        {.layers = 5, .hidden = 64, .heads = 8, .kvHeads = 8, .intermediate = 128, .vocab = 256, .sequence = 64});
    c.problem.context = {4, rules::CandidateSet::Full, rules::SequenceParallel::Off};
    c.problem.cost.profile.linkLatencySeconds = 1e-5;
    c.problem.cost.slackPercent = 0;
    const auto front = solved(c.problem, Engine::Optimal)->optimum->front();
    QVERIFY(front && front->points.size() > 5);
    c.problem.cost.slackPercent = slackPercent;
    int overBudget = 0, seen = 0;
    const std::size_t full = front->points.size(), rounds = std::min<std::size_t>(full, test::rounds(8));
    for (std::size_t round = 0; round < rounds; ++round) {
      const solve::ParetoPoint& point = front->points[round * full / rounds];
      c.problem.cost.memoryBudget = point.bytes;
      const Plan plan = planOf(c, *solved(c.problem, Engine::Optimal));
      std::size_t kept = 0, reported = 0;
      for (const ReplicatedLayers& whole : replicatedLayers(plan))
        reported += whole.why == ReplicatedCause::OverBudget ? whole.count : 0;
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.replication);
        kept += costs && costs->isOverBudget && !layer.weight.empty();
      }
      QCOMPARE(reported, kept);
      const std::string text = replicatedText(replicatedLayers(plan));
      QCOMPARE(text.find(" not fit the memory budget when split") != std::string::npos, kept > 0);
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.replication);
        if (!costs || layer.weight.empty() || seen++ % 4 != 0) continue;
        const std::string wrong = refutedUnderBudget(c, plan, layer.node, *costs);
        QVERIFY2(wrong.empty(), fmt::format("budget {}: {} {}{}", point.bytes,
                                            graph::layerName(*plan.graph, layer.node), toText(layer.replication), wrong)
                                    .c_str());
        overBudget += costs->isOverBudget;
      }
    }
    QVERIFY2(rounds < 8 || overBudget > 5, fmt::format("{} layers", overBudget).c_str());
  }

  /// A stopped search still has a lower bound: faster plans are over the budget. Reasons claim nothing about plans that
  /// were not searched.
  void anUnprovedPlanClaimsNoMoreThanItsBound() {
    Case c;
    c.problem.graph = test::llamaGraph({.layers = 28,
                                        .hidden = 1536,
                                        .heads = 12,
                                        .kvHeads = 2,
                                        .intermediate = 8960,
                                        .vocab = 151936,
                                        .sequence = 128,
                                        .isTied = true});
    c.problem.context = {16, rules::CandidateSet::Optimum, rules::SequenceParallel::Off};
    c.problem.cost.isTraining = true;
    c.problem.cost.optimizer = solve::Optimizer::Sgd;
    c.problem.cost.profile.linkLatencySeconds = 3e-3;
    int notProved = 0, bound = 0;
    const std::int64_t roomy = solved(c.problem, Engine::Optimal)->optimum->cost().bytes();
    constexpr std::uint64_t kBudgets = 20;
    const std::uint64_t rounds = std::min(kBudgets, test::rounds(kBudgets));
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto percent = static_cast<std::int64_t>(80 - round * kBudgets / rounds);
      c.problem.cost.memoryBudget = roomy * percent / 100;
      const auto result = solved(c.problem, Engine::Optimal);
      if (!result || !result->optimum || result->optimum->isProved()) continue;
      ++notProved;
      const Plan plan = planOf(c, *result);
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.replication);
        if (!costs || !costs->isFastEnough) continue;
        const std::string text = fmt::format("{} %: {}", percent, toText(layer.replication));
        QVERIFY2(!costs->isProved, text.c_str());
        QCOMPARE(costs->isOverBudget, plan.cost.femtoseconds() + costs->extraFs < *plan.lowerBoundFs);
        QVERIFY2(text.find("found") != std::string::npos || text.find("unknown") != std::string::npos, text.c_str());
        bound += costs->isOverBudget;
      }
    }
    qInfo("%d plans not proved, %d layers over the budget", notProved, bound);
    QVERIFY(rounds < kBudgets || (notProved > 0 && bound > 0));
  }

 private:
  std::string falseReason(const Case& c, const Plan& plan, Dice& dice,
                          std::array<std::size_t, std::variant_size_v<ReplicationReason>>& checked) {
    for (int i = 0; i < 2; ++i) {
      const LayerPlan& layer = plan.layers[static_cast<std::size_t>(dice.upTo(std::ssize(plan.layers) - 1))];
      ++checked[layer.replication.index()];
      const auto* costs = std::get_if<DoesNotPay>(&layer.replication);
      m_savesNoMemory += costs && costs->isFastEnough;
      const auto* cannot = std::get_if<Cannot>(&layer.replication);
      m_byRedistribution += cannot && cannot->isUnlessRedistributed;
      const auto* setting = std::get_if<NotAskedFor>(&layer.replication);
      if (setting) ++m_fits[static_cast<std::size_t>(setting->fit)];
      m_within += setting && setting->extraWithinFs;
      if (std::string wrong = refuted(c, plan, layer.node, layer.replication); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::size_t m_byRedistribution = 0;   ///< layers that can be split only with redistribution
  std::array<std::size_t, 3> m_fits{};  ///< by BudgetFit
  std::size_t m_within = 0;             ///< reasons that name the fastest plan within the budget
  std::size_t m_savesNoMemory = 0;      ///< layers whose fast enough splits save no memory
};

QTEST_APPLESS_MAIN(TestReplicationClaims)
#include "tst_replication_claims.moc"
