#pragma once
/// Activation checkpointing: a block of the model keeps what comes into it, and runs again before its backward pass for
/// what that needs (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174). Pure.
///
/// Only what a call needs that keeps something runs again: the sum at a block's end and the reduction in front of it
/// keep nothing, and are passed backward as they were recorded.
#include "graph/gradients.h"

#include <string>
#include <vector>

namespace cleave::graph {

/// The modules that repeat ("model.layers.0", ...), as far as one keeps more than what comes into it. In graph order.
std::vector<std::string> checkpointableBlocks(const Graph& graph, const Gradients& gradients);

struct CheckpointedBlock {
  std::string path;
  std::vector<NodeId> again;  ///< calls that run again, in order
  std::vector<ValueId> kept;  ///< what they read of calls outside the block, each once
  NodeId last;                ///< that keeps something: the block runs again before the backward pass of this one
};

struct Checkpoints {
  std::vector<CheckpointedBlock> blocks;
  std::vector<std::uint32_t> againIn;  ///< by NodeId: 1 + the block in which the call runs again; 0: it does not
  std::vector<bool> keepsAgain;     ///< by NodeId: keeps what its backward pass needs when it runs again, and then only
  std::vector<bool> isNeededAgain;  ///< by ValueId: a call that runs again reads what its block has made
  bool isAgain(NodeId node) const { return !againIn.empty() && againIn[node.index()] > 0; }
  bool keeps(NodeId node) const { return !keepsAgain.empty() && keepsAgain[node.index()]; }
  bool isNeeded(ValueId value) const { return !isNeededAgain.empty() && isNeededAgain[value.index()]; }
};

/// Of these blocks; none of them: nothing runs again, and all is empty. Of a model's graph or of a rank program.
Checkpoints findCheckpoints(const Graph& graph, const Gradients& gradients, const std::vector<std::string>& blocks);

}  // namespace cleave::graph
