#pragma once
/// Bytes beyond the values of the graph: buffers of collectives and operators while they run, and memory that autograd
/// saves inside an operator. plan/build/predict.cpp has the same list for the forward pass of a rank program. Internal
/// to this room.
#include "graph/expert_memory.h"
#include "solve/cost/facts.h"

namespace cleave::solve {

class Buffers {
 public:
  Buffers(const Problem& problem, const Variables& variables, const CostFacts& facts);

  /// Bytes of one rank's part of the value.
  std::int64_t bytes(ValueId value, const Placement& placement) const;
  std::int64_t fullBytes(ValueId value) const { return bytes(value, Placement()); }
  /// Bytes of the gathered tensor of a split value, with replicas and padding.
  std::int64_t gathered(ValueId value, const Placement& placement) const;
  /// Bytes of the rank-major copy that a gather or scatter along an inner dimension needs; 0 for the outermost.
  std::int64_t rankMajor(ValueId value, const Placement& placement) const;

  /// Bytes of buffers while the layer runs forward, without its gathered input.
  std::int64_t forward(NodeId node, const rules::LayerStrategy& option) const;
  /// Bytes of buffers while its backward runs, without its gathered input and gradients of values.
  std::int64_t backward(NodeId node, const rules::LayerStrategy& option) const;

  /// Bytes that an operator saves from forward to backward: masks, attention's logsumexp, the loss's log-softmax,
  /// intermediate values of experts. `result`: placement of the first result before redistribution; `operand`:
  /// placement of the first operand.
  std::int64_t savedInside(NodeId node, const rules::ChosenStrategy& option, const Placement& result,
                           const Placement& operand) const;

 private:
  /// Placement of a column+gather layer's result before the gather.
  Placement partOf(const graph::LayerShape& layer, const rules::LayerStrategy& option, ValueId result) const;
  /// Token slots per rank, in all its experts and in one expert.
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
