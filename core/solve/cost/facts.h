#pragma once
/// Facts that affect costs and do not depend on choices. They are computed once per problem. Internal to this room.
#include "base/checked.h"
#include "graph/checkpoints.h"
#include "graph/liveness.h"
#include "graph/operators.h"
#include "solve/problem/problem.h"
#include "solve/problem/variables.h"

#include <cstdint>
#include <vector>

namespace cleave::solve {

struct ValueFacts {
  std::int64_t count = 0;  ///< elements of the full tensor
  std::int32_t itemSize = 1;
  bool isReal = false;  ///< the type is floating-point
  bool needsGradient = false;
  bool isParameter = false;
  bool isPacked = false;       ///< a parameter in Graph::packedBytes
  bool isSaved = false;        ///< training: its memory is saved until the backward pass
  bool isSavedAgain = false;   ///< its recomputed copy is saved until the backward pass
  bool isNeededAgain = false;  ///< a recomputed node of its block reads it again
  bool isCached = false;       ///< inference: keys or values that generation reads again
  bool isOutput = false;       ///< it stays, and is gathered, at the end of the forward pass
  bool isGathered = false;     ///< a layer may gather it from the sequence
  ValueId heldBy;              ///< the owner of its memory; invalid if that memory stays
  ValueId gradientIn;          ///< the owner of its gradient's memory; invalid if that memory stays
  bool isPart = false;         ///< no rank repeats elements of either: no expand between
  /// The dimension along which it is a piece of `heldBy`; kAll: it is all of `heldBy`; kPieces: several dimensions, or
  /// not known.
  static constexpr int kAll = -1, kPieces = -2;
  int cutAlong = kPieces;
  std::int64_t otherOutputs = 0;  ///< for an output: lower bound of the bytes per rank of all other outputs
};

struct NodeFacts {
  const graph::Operator* op =
      &graph::operatorOf({});  ///< row of its operator; for nodes that are not calls, the row of unknown operators
  double flopsPerSecond = 1;
  std::int64_t depth = 1;  ///< Product: summed elements; Convolution: weights per position; Attention: key positions
  std::int8_t passes = 1;  ///< its time as a multiple of its forward time, backward included
  bool needsGradient = false;  ///< a result needs a gradient
  bool isAgain = false;        ///< recomputed before the backward pass of its block
  bool isLastToSave = false;   ///< training: while this node runs, no memory saved by later nodes is live
  std::uint32_t costClass = 0;
};

/// Lifetimes of gradients, by ValueId; empty unless training. A gradient has the placement of its value and the size of
/// its memory. The gradient of a view is part of its owner's gradient, except for a repetition (expand), which is
/// larger.
struct BackwardFacts {
  std::vector<NodeId> firstSaver;       ///< for saved owners: the last node in the backward pass that needs it
  std::vector<NodeId> firstSaverAgain;  ///< for owners that are saved when their block is recomputed
  std::vector<NodeId> lastAgain;        ///< for recomputed owners: the last recomputed node that reads it, else invalid
  std::vector<ValueId> gradientOwner;   ///< value whose gradient contains this one's
  std::vector<NodeId> lastReader;       ///< for gradient owners: the first node in the backward pass that adds to the
                                        ///< gradient; invalid if there is no such node
};

struct CostFacts {
  CostFacts(const Problem& problem, const Variables& variables);
  const ValueFacts& of(ValueId value) const { return values[value.index()]; }
  const NodeFacts& of(NodeId node) const { return nodes[node.index()]; }

  graph::Lifetimes lifetimes;
  std::vector<ValueFacts> values;
  std::vector<NodeFacts> nodes;
  BackwardFacts backward;
  graph::Checkpoints checkpoints;
  std::int64_t fixedBytes = 0;
};

}  // namespace cleave::solve
