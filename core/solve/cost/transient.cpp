#include "solve/cost/facts.h"

#include <algorithm>

/// Buffers beside values, as the rank program needs them (plan/predict.cpp has the same list for its operators).

namespace cleave::solve {
namespace {

using rules::CollectiveKind;
using rules::StrategyOption;

bool hasOuterSizes(const graph::Shape& shape, int dim) {
  return std::any_of(shape.begin(), shape.begin() + std::min<std::ptrdiff_t>(dim, std::ssize(shape)), [](std::int64_t size) { return size > 1; });
}

class Buffers {
 public:
  Buffers(const Problem& problem, const Variables& variables)
      : m_graph(*problem.graph), m_variables(variables), m_ranks(problem.context.worldSize) {}

  std::int64_t bytes(ValueId value, const Placement& placement) const {
    return placement.localCount(m_graph.shapeOf(value), m_ranks) * graph::itemSize(m_graph.value(value).type.dtype);
  }
  /// All parts of a split value, and the rank-major copy that gathering along an inner dimension takes.
  std::int64_t gathered(ValueId value, const Placement& placement) const {
    const std::int64_t whole = saturatingMul(bytes(value, placement), m_ranks);
    return hasOuterSizes(m_graph.shapeOf(value), placement.firstDim()) ? saturatingMul(2, whole) : whole;
  }

  /// While `node` runs with `option`, if it is a layer.
  std::int64_t of(NodeId node, const rules::TakenOption& option) const {
    const auto& layer = m_variables.layer(node);
    return layer && option ? ofLayer(*layer, *option, m_graph.node(node).results[0]) : 0;
  }

 private:
  std::int64_t ofLayer(const graph::LayerShape& layer, const StrategyOption& option, ValueId result) const {
    const std::int64_t whole = bytes(result, Placement());
    if (layer.kind == graph::LayerKind::CrossEntropy) return ofLoss(layer, option);
    std::int64_t total = option.before ? gathered(layer.input, option.input) : 0;
    if (!option.after || *option.after == CollectiveKind::AllReduce) return total;
    if (*option.after == CollectiveKind::ReduceScatter) {
      // The partial sums, whole, and their rank-major copy.
      return saturatingAdd(total, hasOuterSizes(m_graph.shapeOf(result), option.result.firstDim()) ? saturatingMul(2, whole) : whole);
    }
    const int last = static_cast<int>(m_graph.shapeOf(result).size()) - 1;
    const Placement part = option.weight.shifted(last - layer.outAxis);
    // The whole is the result itself.
    return saturatingAdd(total, bytes(result, part) + std::max<std::int64_t>(0, gathered(result, part) - whole));
  }

  /// The log-softmax; in the vocabulary-parallel form the exponentials, in float32 at least.
  std::int64_t ofLoss(const graph::LayerShape& layer, const StrategyOption& option) const {
    const std::int64_t logits = bytes(layer.input, option.input);
    const int itemSize = graph::itemSize(m_graph.value(layer.input).type.dtype);
    return option.strategy == rules::Strategy::Vocab && itemSize < 4 ? logits / itemSize * 4 : logits;
  }

  const Graph& m_graph;
  const Variables& m_variables;
  const int m_ranks;
};

}  // namespace

std::int64_t CostModel::transientPeak(const Solution& solution) const {
  const Graph& graph = *m_problem.graph;
  const Buffers buffers(m_problem, m_variables);
  std::vector<std::int64_t> bytes(graph.values.size(), 0), workspace(graph.nodes.size(), 0);
  for (ValueId value : idRange<ValueId>(graph.values.size())) {
    const ValueFacts& facts = m_facts->of(value);
    if (facts.isSaved || facts.isCached || !m_facts->lifetimes.ownsMemory(value)) continue;
    const Placement& placement = solution.of(value);
    bytes[value.index()] = placement.isReplicated() ? facts.count * facts.itemSize : buffers.bytes(value, placement);
  }
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto& option = solution.strategies[node.index()];
    if (option) workspace[node.index()] = buffers.of(node, option);
  }
  for (const auto& [value, computed] : solution.computedAs) {
    auto& space = workspace[graph.value(value).producer.index()];
    space = saturatingAdd(space, buffers.bytes(value, computed));
  }
  const graph::MemoryUse use = m_facts->lifetimes.run(bytes, workspace);

  // Split outputs are gathered at the end, one after the other; each part goes when its whole is there.
  std::int64_t peak = use.peak, live = use.liveAfter.empty() ? 0 : use.liveAfter.back();
  std::vector<bool> isDone(graph.values.size(), false);
  for (const graph::Output& output : graph.outputs) {
    const Placement& placement = solution.of(output.value);
    if (m_problem.context.worldSize == 1 || placement.isReplicated() || isDone[output.value.index()]) continue;
    isDone[output.value.index()] = true;
    peak = std::max(peak, saturatingAdd(live, buffers.gathered(output.value, placement)));
    live += buffers.bytes(output.value, Placement()) - bytes[m_facts->lifetimes.ownerOf(output.value).index()];
  }
  return peak;
}

std::int64_t CostModel::leastTransient(NodeId node, const Choice& choice) const {
  const graph::Node& n = m_problem.graph->node(node);
  if (n.kind != graph::NodeKind::Call) return 0;
  const Buffers buffers(m_problem, m_variables);
  std::int64_t made = 0, gathered = 0, computed = buffers.of(node, choice.strategy);
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    const ValueFacts& facts = m_facts->of(n.results[i]);
    const Placement& placement = choice.results[i];
    const bool isHeld = !facts.isSaved && !facts.isCached && m_facts->lifetimes.ownsMemory(n.results[i]);
    const std::int64_t held = isHeld ? buffers.bytes(n.results[i], placement) : 0;
    made = saturatingAdd(made, held);
    if (!choice.computedAs.empty() && choice.computedAs[i] != placement) {
      computed = saturatingAdd(computed, buffers.bytes(n.results[i], choice.computedAs[i]));
    }
    const bool isGathered = facts.isOutput && placement.isSplit() && m_problem.context.worldSize > 1;
    if (isGathered) gathered = std::max(gathered, buffers.gathered(n.results[i], placement));
  }
  return std::max(saturatingAdd(made, computed), gathered);
}

}  // namespace cleave::solve
