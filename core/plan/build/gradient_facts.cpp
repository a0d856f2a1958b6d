#include "plan/build/gradient_facts.h"

#include "graph/operators.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::ParallelOp;

enum class Results : std::uint8_t { Same, Different, AsOperands };

/// The results of an operator on the ranks.
Results resultsOf(std::optional<ParallelOp> op) {
  if (!op) return Results::AsOperands;
  switch (*op) {
    case ParallelOp::AllReduce:
    case ParallelOp::AllGather:
    case ParallelOp::GatherInput:
    case ParallelOp::VocabCrossEntropy:
    case ParallelOp::Same: return Results::Same;
    case ParallelOp::ReduceScatter:
    case ParallelOp::Shard:
    case ParallelOp::VocabEmbedding:
    case ParallelOp::LocalExperts: return Results::Different;
    case ParallelOp::MoeExperts:
    case ParallelOp::GroupedProduct:
    case ParallelOp::GradAllReduce:
    case ParallelOp::Dropout: return Results::AsOperands;
  }
  return Results::AsOperands;
}

/// Walks the program once, in order: a value's facts are known before its readers.
class FactFinder {
 public:
  FactFinder(const Lowered& inference, const TrainedGraph& trained)
      : m_lowered(inference), m_trained(trained), m_varies(inference.program.values.size()) {}

  GradientFacts find() && {
    const Graph& program = m_lowered.program;
    GradientFacts facts;
    facts.alikeFor = wholes();
    facts.isFromParts.resize(program.values.size());
    facts.sumsOperands.resize(program.nodes.size());
    const std::vector<ValueId> heldBy = held();
    for (NodeId id : idRange<NodeId>(program.nodes.size())) {
      const bool varies = resultsVary(id, heldBy);
      facts.sumsOperands[id.index()] = varies && !isStepToParts(id) && passesGradients(id);
      for (const ValueId result : program.node(id).results) {
        m_varies[result.index()] = varies;
        if (heldBy[result.index()].isValid()) addHeld(facts, result, heldBy[result.index()]);
      }
    }
    return facts;
  }

 private:
  bool isInParts(const Placement& placement) const { return !placement.isReplicatedOn(m_trained.ranks); }

  /// By program value: the ATen value that it holds.
  std::vector<ValueId> held() const {
    std::vector<ValueId> heldBy(m_lowered.program.values.size());
    for (ValueId value : idRange<ValueId>(m_lowered.valueOf.size())) {
      if (const ValueId held = m_lowered.valueOf[value.index()]; held.isValid()) heldBy[held.index()] = value;
    }
    return heldBy;
  }

  /// By program value: the ATen value of which it is the whole, if that has a gradient.
  std::vector<ValueId> wholes() const {
    std::vector<ValueId> wholeFor(m_lowered.program.values.size());
    for (ValueId value : idRange<ValueId>(m_lowered.wholeOf.size())) {
      const ValueId whole = m_lowered.wholeOf[value.index()];
      if (whole.isValid() && m_trained.gradients.of(value)) wholeFor[whole.index()] = value;
    }
    return wholeFor;
  }

  std::optional<ParallelOp> ownOp(NodeId id) const {
    return graph::parallelOp(m_lowered.program.opName(m_lowered.program.node(id)));
  }

  /// The backward passes of these complete the gradients of their operands.
  bool isStepToParts(NodeId id) const {
    const auto own = ownOp(id);
    return own == ParallelOp::ReduceScatter || own == ParallelOp::Shard;
  }

  bool resultsVary(NodeId id, const std::vector<ValueId>& heldBy) const {
    const Node& node = m_lowered.program.node(id);
    if (node.kind != NodeKind::Call) {
      const ValueId value = heldBy[node.results[0].index()];
      return value.isValid() && isInParts(m_trained.solution.of(value));
    }
    if (const Results results = resultsOf(ownOp(id)); results != Results::AsOperands)
      return results == Results::Different;
    bool varies = !m_lowered.completes[id.index()].isValid() && isComputedInParts(node.origin);
    graph::forEachOperand(node, [&](ValueId operand) { varies = varies || m_varies[operand.index()]; });
    return varies;
  }

  bool isComputedInParts(NodeId atenNode) const {
    const auto& results = m_trained.graph.node(atenNode).results;
    return std::any_of(results.begin(), results.end(),
                       [this](ValueId result) { return isInParts(m_trained.solution.computed(result)); });
  }

  bool passesGradients(NodeId id) const {
    const Node& node = m_lowered.program.node(id);
    if (node.kind != NodeKind::Call) return false;
    const ValueId completed = m_lowered.completes[id.index()];
    return completed.isValid() ? m_trained.gradients.of(completed) : m_trained.gradients.of(node.origin);
  }

  /// What a rank has from its own part of something (one head for keys, of a fused layer whose queries are split) and
  /// all have alike: whoever reads it is to see one value with one gradient.
  void addHeld(GradientFacts& facts, ValueId result, ValueId value) {
    if (!m_trained.gradients.of(value)) return;
    const bool isAlike = !isInParts(m_trained.solution.of(value));
    if (isAlike && m_varies[result.index()]) {
      facts.isFromParts[result.index()] = true;
      m_varies[result.index()] = false;
    }
    if (isAlike || isSharedParameter(value)) facts.alikeFor[result.index()] = value;
  }

  /// True for a parameter of which several ranks hold the same part.
  bool isSharedParameter(ValueId value) const {
    if (m_trained.graph.node(m_trained.graph.value(value).producer).kind != NodeKind::Parameter) return false;
    const Placement& placement = m_trained.solution.of(value);
    const auto blocks = placement.blocks();
    return placement.isSplit() &&
           (placement.replicas() > 1 ||
            std::any_of(blocks.begin(), blocks.end(), [](const auto& block) { return block.replicas > 1; }));
  }

  const Lowered& m_lowered;
  const TrainedGraph& m_trained;
  std::vector<bool> m_varies;  ///< by program value: each rank has its own, as its readers see it
};

}  // namespace

GradientFacts findGradientFacts(const Lowered& inference, const TrainedGraph& trained) {
  return FactFinder(inference, trained).find();
}

}  // namespace cleave::plan
