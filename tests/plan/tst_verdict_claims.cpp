// What plans say of how much they split and why not more, on random models: counted again by hand, and refuted by what
// the solver answers when the sentence is applied. Which models: tests/support/seeds.h.
#include "plan/headline.h"
#include "plan/preflight.h"
#include "plan/world_sizes.h"
#include "tests/plan/verdict_fixture.h"
#include "tests/support/seeds.h"

#include <QTest>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

// ---- by hand

std::int64_t elements(const Graph& graph, const solve::Solution& solution, ValueId value, int ranks) {
  return graph::elementCount(*solution.computed(value).localShape(graph.shapeOf(value), ranks));
}

bool isView(const std::string& op) {
  for (const char* view : {"view", "permute", "slice", "expand", "unsqueeze"}) {
    if (op.starts_with(std::string("aten::") + view)) return true;
  }
  return false;
}

/// 2·m·k·n for a layer, 2·s for each element of the queries and of attention's result, one for each element of the
/// largest tensor else.
double flopsByHand(const Graph& graph, const solve::Solution& solution, NodeId id, int ranks) {
  const graph::Node& node = graph.node(id);
  if (node.kind != graph::NodeKind::Call || isView(graph.opName(node))) return 0;
  const std::string& op = graph.opName(node);
  const ValueId result = node.results[0];
  if (op == "aten::embedding") return 0;
  if (op == "aten::linear") {
    const auto layer = graph::layerShape(graph, id);
    const double weight = double(elements(graph, solution, layer->weight, ranks));
    const auto& option = *solution.strategies[id.index()];
    const bool isSequenceKept = option.strategy == rules::Strategy::ReplicatedOnSequence;
    const double rows = double(graph::elementCount(graph.shapeOf(layer->input)) / graph.shapeOf(layer->input).back()) /
                        (isSequenceKept ? ranks : 1);
    return 2 * rows * weight;
  }
  if (op == "aten::cross_entropy_loss")
    return double(elements(graph, solution, std::get<ValueId>(node.args[0]), ranks));
  if (op == "aten::scaled_dot_product_attention") {
    const std::int64_t query = elements(graph, solution, std::get<ValueId>(node.args[0]), ranks);
    return 2.0 * double(graph.shapeOf(result)[2]) * double(query + elements(graph, solution, result, ranks));
  }
  std::int64_t largest = elements(graph, solution, result, ranks);
  for (ValueId operand : graph::operandsOf(node)) {
    const auto& read = solution.of(operand);
    largest = std::max(largest, graph::elementCount(*read.localShape(graph.shapeOf(operand), ranks)));
  }
  return double(largest);
}

double flopsByHand(const Graph& graph, const solve::Solution& solution, int ranks) {
  double sum = 0;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) sum += flopsByHand(graph, solution, n, ranks);
  return sum;
}

/// Everything whole on one rank.
double flopsByHand(const Graph& graph) {
  solve::Solution whole;
  whole.placements.resize(graph.values.size());
  whole.strategies.resize(graph.nodes.size());
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n)) whole.strategies[n.index()] = rules::LayerStrategy{};
  }
  return flopsByHand(graph, whole, 1);
}

// ---- applying what is said

solve::Pin pinTo(const Graph& graph, NodeId node, std::vector<rules::Strategy> strategies) {
  solve::Pin pin;
  pin.pattern = graph::layerName(graph, node);
  pin.text = pin.pattern + " is split";
  pin.strategies = std::move(strategies);
  return pin;
}

std::vector<rules::Strategy> splitForms(const solve::Problem& problem, NodeId node) {
  std::vector<rules::Strategy> forms;
  for (const auto& option :
       rules::layerStrategies(*problem.graph, node, *graph::layerShape(*problem.graph, node), problem.context)
           .offered) {
    if (splitsWeight({.strategy = option}, problem.context.worldSize)) forms.push_back(option.strategy);
  }
  return forms;
}

/// The fastest plan within the budget in which the layer takes a split strategy; nullopt: none splits it.
std::optional<solve::SolveResult> fastestSplitWithin(solve::Problem problem, NodeId node) {
  problem.cost.slackPercent = 0;
  std::optional<solve::SolveResult> best;
  for (rules::Strategy form : splitForms(problem, node)) {
    solve::Problem pinned = problem;
    pinned.pins.push_back(pinTo(*problem.graph, node, {form}));
    auto result = solved(pinned, Engine::Optimal);
    if (!result || !weightIsSplit(*problem.graph, *result->solution, node, problem.context.worldSize)) continue;
    if (!best || result->optimum->cost().femtoseconds() < best->optimum->cost().femtoseconds())
      best = std::move(result);
  }
  return best;
}

/// The same, budget or not.
std::optional<solve::SolveResult> fastestSplit(solve::Problem problem, NodeId node) {
  problem.cost.memoryBudget = kNoLimit;
  return fastestSplitWithin(std::move(problem), node);
}

/// Of the plans in which the layer takes a split strategy and that take no longer than `slowest`: those that hold least
/// for the whole step, one of each strategy that comes to as little; empty: there is none.
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

/// What the one that holds least for the whole step needs more in all than the plan.
std::string needsSomethingElse(const Case& c, const Plan& plan, NodeId node, Femtoseconds slowest,
                               std::int64_t extraBytes) {
  const auto leanest = leanestSplits(c.problem, node, slowest);
  if (leanest.empty()) return ", but no such plan is fast enough";
  const auto isSaid = [&](const solve::PlanCost& cost) { return cost.bytes() - plan.cost.bytes() == extraBytes; };
  return std::any_of(leanest.begin(), leanest.end(), isSaid)
             ? ""
             : fmt::format(", but it needs {} more", leanest.front().bytes() - plan.cost.bytes());
}

/// Of what stays for the whole step, among the plans that need no more in all than the fastest.
std::string holdsLessAllAlong(const Case& c, const Plan& plan, NodeId node, Femtoseconds slowest) {
  solve::Problem lean = c.problem;
  lean.cost.memoryBudget = std::min(lean.cost.budgetBytes(), plan.fastest->bytes);
  const auto leanest = leanestSplits(lean, node, slowest);
  const bool holdsLess = !leanest.empty() && leanest.front().additiveBytes() < plan.cost.additiveBytes();
  return holdsLess ? fmt::format(", but one holds {} less all along",
                                 plan.cost.additiveBytes() - leanest.front().additiveBytes())
                   : "";
}

/// With a slack "does not pay" is said of what is too slow, and of what is fast enough and holds no less.
std::string refutedCost(const Case& c, const Plan& plan, NodeId node, const DoesNotPay& costs,
                        Femtoseconds fastestSplitFs) {
  if (fastestSplitFs - plan.cost.femtoseconds() != costs.extraFs) return ", but it costs something else";
  const Femtoseconds slowest = c.problem.cost.slowest(plan.fastest->femtoseconds);
  if (costs.isFastEnough != (fastestSplitFs <= slowest)) return ", but the slack says otherwise";
  if (!costs.isFastEnough) return costs.extraFs > 0 ? "" : ", but it is faster";
  if (costs.extraBytes == 0) return holdsLessAllAlong(c, plan, node, slowest);
  return needsSomethingElse(c, plan, node, slowest, costs.extraBytes);
}

/// Under a budget that binds: what faster plans need, and what those within it hold.
std::string refutedUnderBudget(const Case& c, const Plan& plan, NodeId node, const DoesNotPay& costs) {
  const Femtoseconds fs = plan.cost.femtoseconds(), slowest = c.problem.cost.slowest(plan.fastest->femtoseconds);
  const auto any = fastestSplit(c.problem, node), within = fastestSplitWithin(c.problem, node);
  if (!any) return ", but no pin brings it";
  const Femtoseconds extra = any->optimum->cost().femtoseconds() - fs;
  const bool isExtraWithin = within && within->optimum->cost().femtoseconds() - fs == costs.extraFs;
  if (costs.isOverBudget && any->optimum->cost().bytes() <= c.problem.cost.budgetBytes())
    return ", but it fits the budget";
  if (costs.extraFs != extra && (costs.isOverBudget || !isExtraWithin)) return ", but it costs something else";
  if (costs.isOverBudget || (costs.isFastEnough && costs.extraBytes == 0))
    return holdsLessAllAlong(c, plan, node, slowest);
  if (!costs.isFastEnough)
    return within && within->optimum->cost().femtoseconds() <= slowest ? ", but it is fast enough" : "";
  return needsSomethingElse(c, plan, node, slowest, costs.extraBytes);
}

solve::Problem withAll(solve::Problem problem) {
  problem.pins.clear();
  problem.rulesOff.clear();
  problem.context.candidateSet = rules::CandidateSet::Full;
  problem.context.sequenceParallel = rules::SequenceParallel::Auto;
  return problem;
}

/// Whether a plan that may redistribute all values splits it, after `changes`.
bool redistributionSplits(const solve::Problem& problem, NodeId node, const std::vector<solve::Change>& changes = {}) {
  solve::Problem free = problem;
  for (const solve::Change& change : changes) free = *solve::applied(free, change);
  free.redistributable = {"*"};
  return fastestSplit(free, node).has_value();
}

/// "Without redistribution" is said where redistribution brings it, with what is said beside, and only there.
std::string refutedCannot(const Case& c, NodeId node, const Cannot& cannot) {
  if (fastestSplit(withAll(c.problem), node)) return ", but other settings bring it";
  if (!cannot.isUnlessRedistributed)
    return redistributionSplits(withAll(c.problem), node) ? ", but redistribution brings it" : "";
  if (!redistributionSplits(c.problem, node, cannot.withThat)) return ", but that redistribution does not bring it";
  const bool isNeedless = !cannot.withThat.empty() && redistributionSplits(c.problem, node);
  return isNeedless ? ", but redistribution alone brings it" : "";
}

/// What is said of the budget: a plan as fast that splits it keeps to it, or none does.
std::string refutedFit(const solve::Problem& problem, NodeId node, Femtoseconds fastest, BudgetFit fit) {
  if (fit == BudgetFit::NotKnown) return {};
  const auto within = fastestSplitWithin(problem, node);
  const bool fits = within && within->optimum->cost().femtoseconds() == fastest;
  if (fits == (fit == BudgetFit::Fits)) return {};
  return fits ? ", but it fits the budget" : ", but none as fast fits the budget";
}

/// Empty when what the standing says comes true; else what does not.
std::string refuted(const Case& c, const Plan& plan, NodeId node, const Standing& standing) {
  const int ranks = c.problem.context.worldSize;
  const std::string text = graph::layerName(*c.problem.graph, node) + " " + toText(standing);
  if (std::holds_alternative<Split>(standing))
    return weightIsSplit(*plan.graph, *plan.solution, node, ranks) ? "" : text + ", but its weight is whole";
  if (weightIsSplit(*plan.graph, *plan.solution, node, ranks)) return text + ", but its weight is split";
  const auto fs = plan.cost.femtoseconds();
  const auto here = fastestSplit(c.problem, node);
  if (const auto* cannot = std::get_if<Cannot>(&standing)) {
    if (here) return text + ", but a pin brings it";
    const std::string wrong = refutedCannot(c, node, *cannot);
    return wrong.empty() ? "" : text + wrong;
  }
  if (const auto* costs = std::get_if<DoesNotPay>(&standing)) {
    if (!here) return text + ", but no pin brings it";
    const std::string wrong = refutedCost(c, plan, node, *costs, here->optimum->cost().femtoseconds());
    return wrong.empty() ? "" : text + wrong;
  }
  const auto* setting = std::get_if<NotAskedFor>(&standing);
  if (!setting) return {};
  if (setting->changes.empty() && !here) return text + ", but no pin brings it";
  if (!setting->changes.empty() && here) return text + ", but a pin brings it without that";
  solve::Problem changed = c.problem;
  for (const solve::Change& change : setting->changes) changed = *solve::applied(changed, change);
  const auto then = fastestSplit(changed, node);
  if (!then) return text + ", but these changes do not bring it";
  const Femtoseconds fastest = then->optimum->cost().femtoseconds();
  if (fastest - fs != setting->extraFs) return text + ", but it costs something else";
  const std::string wrong = refutedFit(changed, node, fastest, setting->fit);
  return wrong.empty() ? "" : text + wrong;
}

}  // namespace

class TestVerdictClaims : public QObject {
  Q_OBJECT
 private slots:
  void sentencesComeTrueOnRandomModels() {
    const test::Seeds seeds(1'000);
    std::array<std::size_t, std::variant_size_v<Standing>> told{};
    std::size_t plans = 0;
    for (const std::uint64_t seed : seeds) {
      Dice dice(seed);
      const Case c = randomCase(dice);
      const std::string where = fmt::format("seed {}: {}: ", seed, describe(c));
      const auto result = solved(c.problem, c.engine);
      if (!result) continue;
      ++plans;
      const Plan plan = planOf(c, *result);
      if (const std::string wrong = miscounted(plan); !wrong.empty()) QFAIL((where + wrong).c_str());
      if (const std::string wrong = falseWork(c, plan); !wrong.empty()) QFAIL((where + wrong).c_str());
      if (const std::string wrong = falsePreflight(c); !wrong.empty()) QFAIL((where + wrong).c_str());
      if (const std::string wrong = falseStanding(c, plan, dice, told); !wrong.empty()) QFAIL((where + wrong).c_str());
      if (seed % 8 != 0) continue;
      if (const std::string wrong = falseWorldSize(c, dice); !wrong.empty()) QFAIL((where + wrong).c_str());
    }
    // Each of the reasons was there to be refuted.
    for (const Standing& standing :
         {Standing(Split{}), Standing(Cannot{}), Standing(DoesNotPay{}), Standing(NotAskedFor{})}) {
      QVERIFY2(seeds.count() < 1000 || told[standing.index()] * 50 > seeds.count(),
               std::string(kindOf(standing)).c_str());
    }
    QVERIFY2(seeds.count() < 1000 || m_heldNoLess > 0, "nothing was left out for what it holds");
    QVERIFY2(seeds.count() < 1000 || m_byRedistribution > 0, "redistribution brought nothing");
    QVERIFY(plans * 2 > seeds.count());
  }

  /// Engines that do not search under a budget say of faster plans whether these keep to it.
  void fasterPlansAreHeldAgainstTheBudget() {
    const test::Seeds seeds(400);
    std::array<std::size_t, std::variant_size_v<Standing>> told{};
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
      if (const std::string wrong = falseStanding(c, plan, dice, told); !wrong.empty()) QFAIL((where + wrong).c_str());
    }
    QVERIFY2(seeds.count() < 400 || (m_fits[0] > 0 && m_fits[1] > 0),
             fmt::format("{} within, {} over", m_fits[0], m_fits[1]).c_str());
  }

  /// More layers than are weighed one by one, on a device whose collectives are dear: each point of the front as a
  /// budget keeps some whole.
  void whatABudgetKeepsWholeComesTrue_data() {
    QTest::addColumn<double>("slackPercent");
    QTest::newRow("without slack") << 0.0;
    QTest::newRow("with slack") << 1.0;
  }
  void whatABudgetKeepsWholeComesTrue() {
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
    for (const solve::ParetoPoint& point : front->points) {
      c.problem.cost.memoryBudget = point.bytes;
      const Plan plan = planOf(c, *solved(c.problem, Engine::Optimal));
      std::size_t kept = 0, toldKept = 0;
      for (const ReplicatedLayers& whole : replicatedLayers(plan))
        toldKept += whole.why == ReplicatedCause::OverBudget ? whole.count : 0;
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.standing);
        kept += costs && costs->isOverBudget && !layer.weight.empty();
      }
      QCOMPARE(toldKept, kept);
      QCOMPARE(replicatedText(replicatedLayers(plan)).find("because of the memory budget") != std::string::npos,
               kept > 0);
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.standing);
        if (!costs || layer.weight.empty() || seen++ % std::max<int>(4, 40 / test::rounds(10)) != 0) continue;
        const std::string wrong = refutedUnderBudget(c, plan, layer.node, *costs);
        QVERIFY2(wrong.empty(), fmt::format("budget {}: {} {}{}", point.bytes,
                                            graph::layerName(*plan.graph, layer.node), toText(layer.standing), wrong)
                                    .c_str());
        overBudget += costs->isOverBudget;
      }
    }
    QVERIFY2(overBudget > (test::rounds(10) < 10 ? 0 : 10), fmt::format("{} layers", overBudget).c_str());
  }

  /// A search that ends before it knows leaves a bound all the same: what would be faster is over the budget, and of
  /// what would not be nothing is said that was not looked at.
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
    for (int percent = 80; percent > 60; percent -= 1) {
      c.problem.cost.memoryBudget = roomy * percent / 100;
      const auto result = solved(c.problem, Engine::Optimal);
      if (!result || !result->optimum || result->optimum->isProved()) continue;
      ++notProved;
      const Plan plan = planOf(c, *result);
      for (const LayerPlan& layer : plan.layers) {
        const auto* costs = std::get_if<DoesNotPay>(&layer.standing);
        if (!costs || !costs->isFastEnough) continue;
        const std::string text = fmt::format("{} %: {}", percent, toText(layer.standing));
        QVERIFY2(!costs->isProved, text.c_str());
        QCOMPARE(costs->isOverBudget, plan.cost.femtoseconds() + costs->extraFs < *plan.lowerBoundFs);
        QVERIFY2(text.find("found") != std::string::npos || text.find("not known") != std::string::npos, text.c_str());
        bound += costs->isOverBudget;
      }
    }
    qInfo("%d plans not proved, %d layers over the budget", notProved, bound);
    QVERIFY(notProved > 0 && bound > 0);
  }

 private:
  static std::string miscounted(const Plan& plan) {
    const Shares& shares = plan.shares;
    std::size_t layers = 0, split = 0;
    std::int64_t weights = 0, held = 0;
    for (const LayerPlan& layer : plan.layers) {
      if (layer.weight.empty()) continue;
      ++layers;
      split += weightIsSplit(*plan.graph, *plan.solution, layer.node, plan.ranks);
    }
    for (const ParameterShards& parameter : plan.parameters) {
      weights += sizeInBytes(parameter.type);
      held += sizeInBytes(graph::TensorType{parameter.type.dtype, parameter.localShape});
    }
    if (layers != shares.layers.layers || split != shares.layers.split)
      return fmt::format("{}, but {} of {} are", toText(shares), split, layers);
    if (weights != shares.weightBytes || held != shares.rankWeightBytes)
      return fmt::format("{} of {} bytes on a rank, not {} of {}", held, weights, shares.rankWeightBytes,
                         shares.weightBytes);
    if (plan.costSettings.isTraining) return {};
    const double whole = flopsByHand(*plan.graph), rank = flopsByHand(*plan.graph, *plan.solution, plan.ranks);
    const double share = std::clamp((1 - rank / whole) / (1 - 1.0 / plan.ranks), 0.0, 1.0);
    if (std::abs(share - shares.flopsShare()) > 1e-6)
      return fmt::format("{} of the FLOPs are split by hand, not {}", share, shares.flopsShare());
    Femtoseconds replicated;
    for (const ReplicatedWork& work : shares.replicated) replicated += work.femtoseconds;
    if (replicated != shares.replicatedFs)
      return fmt::format("groups take {} fs, all {} fs", replicated, shares.replicatedFs);
    return {};
  }

  std::size_t m_byRedistribution = 0;   ///< layers that "cannot be split without redistribution", and can with it
  std::array<std::size_t, 3> m_fits{};  ///< by BudgetFit
  std::size_t m_heldNoLess = 0;         ///< layers whole because no plan that splits them is fast enough and holds less

  std::string falseStanding(const Case& c, const Plan& plan, Dice& dice,
                            std::array<std::size_t, std::variant_size_v<Standing>>& told) {
    for (int i = 0; i < 2; ++i) {
      const LayerPlan& layer = plan.layers[static_cast<std::size_t>(dice.upTo(std::ssize(plan.layers) - 1))];
      ++told[layer.standing.index()];
      const auto* costs = std::get_if<DoesNotPay>(&layer.standing);
      m_heldNoLess += costs && costs->isFastEnough;
      const auto* cannot = std::get_if<Cannot>(&layer.standing);
      m_byRedistribution += cannot && cannot->isUnlessRedistributed;
      const auto* setting = std::get_if<NotAskedFor>(&layer.standing);
      if (setting) ++m_fits[static_cast<std::size_t>(setting->fit)];
      if (std::string wrong = refuted(c, plan, layer.node, layer.standing); !wrong.empty()) return wrong;
    }
    return {};
  }

  /// Of what cannot be split, the dearest operator: no pin of its result on any dimension holds.
  static std::string falseWork(const Case& c, const Plan& plan) {
    for (const ReplicatedWork& work : plan.shares.replicated) {
      const graph::Node& node = plan.graph->node(work.first);
      if (!std::holds_alternative<Cannot>(work.why) || graph::layerShape(*plan.graph, work.first)) continue;
      if (const auto form = splitOf(c.problem, node.results[0])) {
        return fmt::format("{}, but {} can be {}", toText(work), plan.graph->value(node.results[0]).name, *form);
      }
      return {};
    }
    return {};
  }

  /// The first even split of a value that some plan has; nullopt: none.
  static std::optional<std::string> splitOf(const solve::Problem& problem, ValueId value) {
    const graph::Value& asked = problem.graph->value(value);
    for (int dim = 0; dim < static_cast<int>(asked.type.shape.size()); ++dim) {
      const auto placement = Placement::split(dim);
      if (!placement.localShape(asked.type.shape, problem.context.worldSize)) continue;
      solve::Problem pinned = problem;
      pinned.pins.push_back(*solve::Pin::parse(asked.name + "=" + placement.text()));
      if (solved(pinned, Engine::Learning)) return placement.text();
    }
    return std::nullopt;
  }

  /// What is said before any search: weights that stay replicated whatever the plan is, and attention that is computed
  /// whole.
  static std::string falsePreflight(const Case& c) {
    const Preflight before = preflight(c.problem);
    for (const ReplicatedWeights& weights : before.whole) {
      if (!graph::layerShape(*c.problem.graph, weights.first)) continue;
      if (fastestSplit(c.problem, weights.first))
        return fmt::format("{} is said to stay whole ({}), but a pin splits it", weights.pattern, weights.why);
    }
    for (const IndivisibleLayers& layers : before.indivisible) {
      if (fastestSplit(c.problem, layers.first))
        return fmt::format("{} is said not to divide ({}), but a pin splits it", layers.pattern, layers.reason);
    }
    for (const IndivisibleHeads& attention : before.heads) {
      const bool isWhole = attention.text.find("every rank computes all") != std::string::npos;
      const ValueId result = c.problem.graph->node(attention.first).results[0];
      if (!isWhole) continue;
      if (const auto form = splitOf(c.problem, result); form && *form == "S(1)")
        return fmt::format("{} But it can be {}.", attention.text, *form);
    }
    return {};
  }

  static std::string falseWorldSize(const Case& c, Dice& dice) {
    const std::vector<int> ranks{2, static_cast<int>(3 + dice.upTo(5))};
    Case asked = c;
    if (c.engine == Engine::Learning)
      asked.problem.cost.memoryBudget = 1'000 + dice.upTo(500'000);  // which it does not look at
    for (const WorldSize& size : worldSizes(asked.problem, c.engine, ranks)) {
      Case own = asked;
      own.problem.context.worldSize = size.ranks;
      const auto result = solved(own.problem, own.engine);
      if (result.has_value() != size.hasPlan) return fmt::format("{} ranks: {}", size.ranks, toText(size));
      if (!result) continue;
      const Plan plan = planOf(own, *result);
      const bool isOver = plan.cost.bytes() > own.problem.cost.budgetBytes();
      if (isOver != (size.verdict == WorldSizeVerdict::OverBudget))
        return fmt::format("{} ranks: {}, but its plan needs {} B", size.ranks, toText(size), plan.cost.bytes());
      const bool isSame = plan.shares.layers == size.layers && plan.cost.bytes() == size.rankBytes &&
                          plan.cost.femtoseconds() == size.femtoseconds && plan.shares.flopsShare() == size.flopsShare;
      if (!isSame)
        return fmt::format("{} ranks: {}, but the plan says: {}", size.ranks, toText(size), toText(plan.shares));
      const bool splitsNone = std::none_of(plan.layers.begin(), plan.layers.end(), [&](const LayerPlan& layer) {
        return !layer.weight.empty() && weightIsSplit(*plan.graph, *plan.solution, layer.node, size.ranks);
      });
      const bool saysNone = size.verdict == WorldSizeVerdict::Nothing || size.verdict == WorldSizeVerdict::DoesNotPay ||
                            size.verdict == WorldSizeVerdict::NotAskedFor;
      solve::Problem one = c.problem;
      one.context.worldSize = 1;
      const auto alone = solved(one, Engine::Optimal);
      const bool isNoGain = size.verdict == WorldSizeVerdict::DoesNotPay && result->optimum && alone &&
                            alone->optimum->cost().femtoseconds() <= result->optimum->fastest().femtoseconds();
      if (saysNone && !splitsNone && !isNoGain)
        return fmt::format("{} ranks: {}, but layers are split", size.ranks, toText(size));
      const WorldSize again = worldSizes(asked.problem, c.engine, std::vector<int>{size.ranks}).front();
      if (toText(again) != toText(size))
        return fmt::format("{} ranks: {}, but alone: {}", size.ranks, toText(size), toText(again));
    }
    return {};
  }
};

QTEST_APPLESS_MAIN(TestVerdictClaims)
#include "tst_verdict_claims.moc"
