#pragma once
/// What costs depend on and no choice changes, found once for a problem. Inside this room only.
#include "base/checked.h"
#include "graph/liveness.h"
#include "solve/cost/cost_model.h"
#include "solve/cost/operator_costs.h"

namespace cleave::solve {

struct ValueFacts {
  std::int64_t count = 0;       ///< elements, whole
  std::int32_t itemSize = 1;
  bool isReal = false;          ///< of a floating-point type
  bool needsGradient = false;
  bool isSaved = false;         ///< training: its memory stays until the backward pass
  bool isCached = false;        ///< inference: keys or values that generation needs again
  bool isOutput = false;
  bool isGathered = false;      ///< a layer may gather it from the sequence
};

struct NodeFacts {
  OperatorCosts costs;
  double flopsPerSecond = 1;
  std::int64_t depth = 1;       ///< Product: summed elements; Convolution: weights a position; Attention: key positions
  std::int8_t passes = 1;       ///< how often its forward time is spent, backward included
  bool needsGradient = false;   ///< of any result, and so what it saves inside
  std::uint32_t costClass = 0;
};

struct CostFacts {
  CostFacts(const Problem& problem, const Variables& variables);
  const ValueFacts& of(ValueId value) const { return values[value.index()]; }
  const NodeFacts& of(NodeId node) const { return nodes[node.index()]; }

  graph::Lifetimes lifetimes;
  std::vector<ValueFacts> values;
  std::vector<NodeFacts> nodes;
  std::int64_t fixedBytes = 0;
};

}  // namespace cleave::solve
