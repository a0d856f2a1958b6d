// Claims about shares, before a search, and about other world sizes, on random models. The test recounts the shares,
// and tries to refute each claim by solving. tst_replication_claims.cpp does the same for layers. tests/support/seeds.h
// sets the number of models.
#include "plan/build/preflight.h"
#include "plan/build/world_sizes.h"
#include "plan/text/shares_text.h"
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

/// 2·m·k·n for a layer; 2·s for each element of the queries and of the result of attention; otherwise one for each
/// element of the largest tensor.
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

/// FLOPs of one rank without a split.
double flopsByHand(const Graph& graph) {
  solve::Solution whole;
  whole.placements.resize(graph.values.size());
  whole.strategies.resize(graph.nodes.size());
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n)) whole.strategies[n.index()] = rules::LayerStrategy{};
  }
  return flopsByHand(graph, whole, 1);
}

}  // namespace

class TestVerdictClaims : public QObject {
  Q_OBJECT
 private slots:
  void claimsHoldOnRandomModels() {
    const test::Seeds seeds(500);
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
      if (seed % 8 != 0) continue;
      if (const std::string wrong = falseWorldSize(c, dice); !wrong.empty()) QFAIL((where + wrong).c_str());
    }
    QVERIFY(plans * 2 > seeds.count());
  }

 private:
  static std::string miscounted(const Plan& plan) {
    const Shares& shares = plan.shares;
    std::size_t layers = 0, split = 0;
    std::int64_t weights = 0, held = 0;
    for (const LayerPlan& layer : plan.layers) {
      if (layer.weight.empty()) continue;
      ++layers;
      split += weightIsSplit(*plan.graph, *plan.solution, layer.node, plan.spec.ranks);
    }
    for (const ParameterShards& parameter : plan.parameters) {
      weights += sizeInBytes(parameter.type);
      held += sizeInBytes(graph::TensorType{parameter.type.dtype, parameter.localShape});
    }
    if (layers != shares.layers.layers || split != shares.layers.split + shares.layers.gathered)
      return fmt::format("{}, but {} of {} are split", toText(shares), split, layers);
    if (weights != shares.weightBytes || held != shares.rankWeightBytes)
      return fmt::format("a rank has {} of {} bytes, not {} of {}", held, weights, shares.rankWeightBytes,
                         shares.weightBytes);
    if (plan.spec.cost.isTraining) return {};
    const double whole = flopsByHand(*plan.graph), rank = flopsByHand(*plan.graph, *plan.solution, plan.spec.ranks);
    const double share = std::clamp((1 - rank / whole) / (1 - 1.0 / plan.spec.ranks), 0.0, 1.0);
    if (std::abs(share - shares.flopsShare()) > 1e-6)
      return fmt::format("recounted share of split FLOPs: {}, not {}", share, shares.flopsShare());
    Femtoseconds replicated;
    for (const ReplicatedWork& work : shares.replicated) replicated += work.femtoseconds;
    if (replicated != shares.replicatedFs)
      return fmt::format("groups take {} fs, but the total is {} fs", replicated, shares.replicatedFs);
    return {};
  }

  /// Checks the most expensive operator that cannot be split: no pin splits its result on any dimension.
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

  /// The first even split of a value that some plan has; nullopt if no plan has one.
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

  /// Checks the claims before a search: weights that every plan replicates, and attention that every rank computes in
  /// full.
  static std::string falsePreflight(const Case& c) {
    const Preflight before = preflight(c.problem);
    for (const ReplicatedWeights& weights : before.replicated) {
      if (!graph::layerShape(*c.problem.graph, weights.first)) continue;
      if (fastestSplit(c.problem, weights.first))
        return fmt::format("{} should be replicated ({}), but a pin splits it", weights.pattern, weights.why);
    }
    for (const IndivisibleLayers& layers : before.indivisible) {
      if (fastestSplit(c.problem, layers.first))
        return fmt::format("{} should not divide ({}), but a pin splits it", layers.pattern, layers.reason);
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
      asked.problem.cost.memoryBudget = 1'000 + dice.upTo(500'000);  // ignored by this engine
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
        return fmt::format("{} ranks: {}, but its plan has: {}", size.ranks, toText(size), toText(plan.shares));
      const bool splitsNothing = std::none_of(plan.layers.begin(), plan.layers.end(), [&](const LayerPlan& layer) {
        return !layer.weight.empty() && weightIsSplit(*plan.graph, *plan.solution, layer.node, size.ranks);
      });
      const bool reportsNothing = size.verdict == WorldSizeVerdict::Nothing ||
                                  size.verdict == WorldSizeVerdict::DoesNotPay ||
                                  size.verdict == WorldSizeVerdict::NotAskedFor;
      solve::Problem one = c.problem;
      one.context.worldSize = 1;
      const auto alone = solved(one, Engine::Optimal);
      const bool isNoGain = size.verdict == WorldSizeVerdict::DoesNotPay && result->optimum && alone &&
                            alone->optimum->cost().femtoseconds() <= result->optimum->fastest().femtoseconds();
      if (reportsNothing && !splitsNothing && !isNoGain)
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
