#pragma once
/// Bytes beside the values of the graph: what collectives and operators need while they run, and what autograd keeps
/// inside an operator. plan/predict.cpp has the same list for the operators of a rank program's forward pass. Inside
/// this room only.
#include "graph/expert_memory.h"
#include "solve/cost/facts.h"

namespace cleave::solve {

class Buffers {
 public:
  Buffers(const Problem& problem, const Variables& variables, const CostFacts& facts);

  /// Of a rank's part of the value.
  std::int64_t bytes(ValueId value, const Placement& placement) const;
  std::int64_t whole(ValueId value) const { return bytes(value, Placement()); }
  /// The gathered parts of a split value (replicas and padding count).
  std::int64_t gathered(ValueId value, const Placement& placement) const;
  /// The rank-major copy that gathering or scattering along an inner dimension takes; 0 along the outermost.
  std::int64_t rankMajor(ValueId value, const Placement& placement) const;

  /// While the layer runs forward, its gathered input not counted.
  std::int64_t forward(NodeId node, const rules::LayerStrategy& option) const;
  /// While its backward runs, gathered input and gradients of values not counted.
  std::int64_t backward(NodeId node, const rules::LayerStrategy& option) const;

  /// Kept from forward to backward: masks, attention's logsumexp, the loss's log-softmax, what experts compute.
  /// `result` and `operand`: how the first of them are computed and read.
  std::int64_t savedInside(NodeId node, const rules::TakenStrategy& option, const Placement& result,
                           const Placement& operand) const;

 private:
  /// The part of a column+gather layer's result, as computed.
  Placement partOf(const graph::LayerShape& layer, const rules::LayerStrategy& option, ValueId result) const;
  /// Of one rank: places in its experts, and in any one of them.
  struct Experts {
    graph::ExpertMemory memory;
    std::int64_t places = 0, placesOfOne = 0;
  };
  Experts experts(const graph::LayerShape& layer, const rules::LayerStrategy& option) const;
  std::int64_t logits(ValueId logits, const Placement& placement, bool isVocab) const;

  const Graph& m_graph;
  const Variables& m_variables;
  const CostFacts& m_facts;
  const bool m_isTraining;
  const int m_ranks;
};

}  // namespace cleave::solve
