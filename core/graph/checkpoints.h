#pragma once
/// Activation checkpointing: a block keeps only its inputs and runs again before its backward pass (Chen et al.,
/// "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174). Pure. Only calls that lead to saved values run
/// again. The sum at a block's end and the reduction before it save nothing, so their backward pass needs no second
/// run.
#include "graph/gradients.h"

#include <string>
#include <vector>

namespace cleave::graph {

/// The repeated modules ("model.layers.0", ...) that keep more than their inputs, in graph order.
std::vector<std::string> checkpointableBlocks(const Graph& graph, const Gradients& gradients);

struct CheckpointedBlock {
  std::string path;
  std::vector<NodeId> again;  ///< calls that run again, in order
  std::vector<ValueId> kept;  ///< values from outside the block that these calls read, each once
  NodeId last;                ///< the last call that saves something: the block runs again before its backward pass
};

struct Checkpoints {
  std::vector<CheckpointedBlock> blocks;
  std::vector<std::uint32_t> againIn;  ///< by NodeId: 1 + the block in which the call runs again; 0 if it does not
  std::vector<bool> keepsAgain;        ///< by NodeId: saves values for its backward pass only in the second run
  std::vector<bool> isNeededAgain;     ///< by ValueId: made by its block and read by a call that runs again
  bool isAgain(NodeId node) const { return !againIn.empty() && againIn[node.index()] > 0; }
  bool keeps(NodeId node) const { return !keepsAgain.empty() && keepsAgain[node.index()]; }
  bool isNeeded(ValueId value) const { return !isNeededAgain.empty() && isNeededAgain[value.index()]; }
};

/// The checkpoints of these blocks; empty without blocks. The graph is a model's graph or a rank program.
Checkpoints findCheckpoints(const Graph& graph, const Gradients& gradients, const std::vector<std::string>& blocks);

}  // namespace cleave::graph
