#include "solve/cost/buffers.h"

#include <algorithm>

namespace cleave::solve {

using graph::LayerKind;
using graph::LayerShape;
using graph::Saves;
using rules::CollectiveKind;
using rules::LayerStrategy;

Buffers::Buffers(const Problem& problem, const Variables& variables, const CostFacts& facts)
    : m_graph(*problem.graph),
      m_variables(variables),
      m_facts(facts),
      m_isTraining(problem.cost.isTraining),
      m_ranks(problem.context.worldSize) {}

std::int64_t Buffers::bytes(ValueId value, const Placement& placement) const {
  const ValueFacts& facts = m_facts.of(value);
  const std::int64_t count =
      placement.isReplicated() ? facts.count : placement.localCount(m_graph.shapeOf(value), m_ranks);
  return saturatingMul(count, facts.itemSize);
}

std::int64_t Buffers::gathered(ValueId value, const Placement& placement) const {
  return saturatingMul(bytes(value, placement), m_ranks);
}

std::int64_t Buffers::rankMajor(ValueId value, const Placement& placement) const {
  const graph::Shape& shape = m_graph.shapeOf(value);
  const auto outer = shape.begin() + std::min<std::ptrdiff_t>(placement.firstDim(), std::ssize(shape));
  const bool isInner = std::any_of(shape.begin(), outer, [](std::int64_t size) { return size > 1; });
  return isInner ? gathered(value, placement) : 0;
}

Placement Buffers::partOf(const LayerShape& layer, const LayerStrategy& option, ValueId result) const {
  const int last = static_cast<int>(m_graph.shapeOf(result).size()) - 1;
  return option.weight.shifted(last - layer.outAxis);
}

std::int64_t Buffers::forward(NodeId node, const LayerStrategy& option) const {
  const LayerShape& layer = *m_variables.layer(node);
  const ValueId result = m_graph.node(node).results[0];
  // The log-softmax, or the exponentials of the vocabulary-parallel form. Training saves them (savedInside).
  if (layer.kind == LayerKind::CrossEntropy) {
    return m_isTraining ? 0 : logits(layer.input, option.input, option.strategy == rules::Strategy::Vocab);
  }
  if (layer.kind == LayerKind::Experts) {
    if (m_isTraining && m_facts.of(node).needsGradient) return 0;  // savedInside counts this memory
    const Experts held = experts(layer, option);
    return held.memory.forward(held.placesOfOne);
  }
  if (option.after == CollectiveKind::ReduceScatter) {
    // The full tensor of partial sums, and its rank-major copy.
    return saturatingAdd(gathered(result, option.result), rankMajor(result, option.result));
  }
  if (option.after != CollectiveKind::AllGather) return 0;
  const Placement part = partOf(layer, option, result);
  // The gathered tensor is the result itself.
  const std::int64_t beyond = std::max<std::int64_t>(0, gathered(result, part) - fullBytes(result));
  return saturatingAdd(saturatingAdd(bytes(result, part), beyond), rankMajor(result, part));
}

std::int64_t Buffers::backward(NodeId node, const LayerStrategy& option) const {
  const LayerShape& layer = *m_variables.layer(node);
  const ValueId result = m_graph.node(node).results[0];
  if (layer.kind == LayerKind::CrossEntropy) {
    // The gradient of the log-softmax, from which the gradient of the logits is computed. The vocabulary-parallel form
    // does not need it.
    return option.strategy == rules::Strategy::Vocab ? 0 : bytes(layer.input, option.input);
  }
  if (layer.kind == LayerKind::Experts) {
    const Experts held = experts(layer, option);
    return held.memory.backward(held.placesOfOne);
  }
  if (option.after == CollectiveKind::ReduceScatter)
    return saturatingAdd(gathered(result, option.result), rankMajor(result, option.result));
  if (option.after == CollectiveKind::AllGather) return bytes(result, partOf(layer, option, result));
  return 0;
}

std::int64_t Buffers::logits(ValueId logits, const Placement& placement, bool isVocab) const {
  // The vocabulary-parallel loss computes at least in float32.
  const std::int32_t itemSize = m_facts.of(logits).itemSize;
  return isVocab ? bytes(logits, placement) / itemSize * std::max(4, itemSize) : bytes(logits, placement);
}

std::int64_t Buffers::savedInside(NodeId node, const rules::ChosenStrategy& option, const Placement& result,
                                  const Placement& operand) const {
  const NodeFacts& facts = m_facts.of(node);
  if (!m_isTraining || !facts.needsGradient) return 0;
  const ValueId made = m_graph.node(node).results[0];
  const std::int64_t count = bytes(made, result) / m_facts.of(made).itemSize;
  switch (facts.op->saves) {
    case Saves::Mask: return count;
    case Saves::Attention: {
      const graph::Shape& shape = m_graph.shapeOf(made);
      return !shape.empty() && shape.back() > 0 ? count / shape.back() * 4 : 0;
    }
    case Saves::Loss: {
      const auto reads = m_variables.reads(node);
      return reads.empty() ? 0 : logits(reads[0].value, operand, option && option->strategy == rules::Strategy::Vocab);
    }
    case Saves::Experts: {
      const auto& layer = m_variables.layer(node);
      if (!layer || !option) return 0;
      const Experts held = experts(*layer, *option);
      return held.memory.kept(held.places);
    }
    default: return 0;
  }
}

Buffers::Experts Buffers::experts(const LayerShape& layer, const LayerStrategy& option) const {
  const graph::Shape& down = m_graph.shapeOf(layer.down);
  const std::int64_t features = down[static_cast<std::size_t>(layer.inAxis)];
  const std::int64_t places = m_facts.of(layer.target).count;
  const bool isInExpert = option.strategy == rules::Strategy::InExpert;
  return {.memory = {.hidden = down[static_cast<std::size_t>(3 - layer.inAxis)],
                     .features = isInExpert ? features / m_ranks : features,
                     .itemSize = m_facts.of(layer.weight).itemSize,
                     .isClamped = graph::areInTurn(layer)},
          .places = option.strategy == rules::Strategy::ByExpert ? (places + m_ranks - 1) / m_ranks : places,
          .placesOfOne = graph::placesOfOne(places, down[0])};
}

}  // namespace cleave::solve
