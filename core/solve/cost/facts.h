#pragma once
/// What costs depend on and no choice changes, found once for a problem. Inside this room only.
#include "base/checked.h"
#include "graph/checkpoints.h"
#include "graph/liveness.h"
#include "graph/operators.h"
#include "solve/cost/cost_model.h"

namespace cleave::solve {

struct ValueFacts {
  std::int64_t count = 0;  ///< elements, whole
  std::int32_t itemSize = 1;
  bool isReal = false;  ///< of a floating-point type
  bool needsGradient = false;
  bool isParameter = false;
  bool isPacked = false;       ///< a parameter in Graph::packedBytes
  bool isSaved = false;        ///< training: its memory stays until the backward pass
  bool isSavedAgain = false;   ///< the same from when its block runs again, as another memory
  bool isNeededAgain = false;  ///< what runs again in its block reads it
  bool isCached = false;       ///< inference: keys or values that generation needs again
  bool isOutput = false;       ///< stays, and is gathered, at the end of the forward pass
  bool isGathered = false;     ///< a layer may gather it from the sequence
  ValueId heldBy;              ///< the owner of its memory, where that does not stay; else invalid
  ValueId gradientIn;          ///< the owner of its gradient, where that does not stay; else invalid
  bool isPart = false;         ///< of both, on every rank: no view between repeats
  /// The one dimension along which it is a piece of `heldBy`; kAll: it is all of that; kPieces: neither, or not known.
  static constexpr int kAll = -1, kPieces = -2;
  int cutAlong = kPieces;
  std::int64_t otherOutputs = 0;  ///< of an output: bytes that a rank holds at least of the others at the end
};

struct NodeFacts {
  const graph::Operator* op = &graph::operatorOf({});  ///< its row; of what is no call, that of the unknown
  double flopsPerSecond = 1;
  std::int64_t depth = 1;      ///< Product: summed elements; Convolution: weights a position; Attention: key positions
  std::int8_t passes = 1;      ///< how often its forward time is spent, backward included
  bool needsGradient = false;  ///< of any result, and so what it saves inside
  bool isAgain = false;        ///< runs again before its block's backward pass
  bool isLastToSave =
      false;  ///< training: nothing that a later node saves is live when this one runs, forward or backward
  std::uint32_t costClass = 0;
};

/// Whose gradient lives from where to where, by ValueId; empty unless training. A gradient lies like its value and is
/// as large as the memory of it: a view's is part of its owner's, but for a repetition (expand), which is larger.
struct BackwardFacts {
  std::vector<NodeId> firstSaver;       ///< of owners that are saved: in the backward pass, the last node that needs it
  std::vector<NodeId> firstSaverAgain;  ///< of owners that are saved when their block runs again
  std::vector<NodeId> lastAgain;  ///< of owners that are made again: the last node to read them meanwhile, else invalid
  std::vector<ValueId> gradientOwner;  ///< whose gradient this one's is part of
  std::vector<NodeId> lastReader;      ///< of gradient owners: the first node to hand it a gradient; invalid: none
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
