#pragma once
/// The places at which a rank program needs sums of gradients. Pure; reads an inference program (lowering.h).
///
/// Each rank differentiates its own program. By the chain rule the gradient of a value is the sum over all its readers
/// on all ranks. A rank only has its own readers, so three cases arise for a value that all ranks hold alike:
///
///  - Its readers do the same work on each rank. Then each rank already has the full gradient, and a sum would count it
///    once per rank.
///  - A reader does different work on each rank: it also reads a part of something, or depends on the rank. Then each
///    rank has a part of the gradient, and an all-reduce completes it (Megatron-LM's f, arXiv:1909.08053 section 3;
///    the step from invariant to replicated in program/backward.h). The same holds for a part of a parameter that
///    several ranks share, such as a key head: the sum is over these ranks.
///  - It is computed from parts and is still the same on all ranks. Then its readers have the full gradient, and each
///    rank passes on an equal share of it, so that the sum over the parts is right.
///
/// Work differs in the readers of varying values, of values that each rank has only a part of. Collectives end it:
/// all-reduce, all-gather and the split loss make a value that is the same on all ranks. Reduce-scatter and shard begin
/// it, but complete gradients on their own: their backward pass is an all-gather.
#include "graph/gradients.h"
#include "plan/build/lowered.h"
#include "solve/problem/choice.h"

#include <vector>

namespace cleave::plan {

/// An ATen graph to train on more than one rank, and its solution. All outlive this struct.
struct TrainedGraph {
  const Graph& graph;
  const solve::Solution& solution;
  int ranks = 0;
  const graph::Gradients& gradients;
};

/// Facts of an inference program, by its values and nodes.
struct GradientFacts {
  /// By value: the ATen value whose gradient a sum would complete, if ranks hold the value alike, or share a part of a
  /// parameter. Invalid for other values, and for values without a gradient.
  std::vector<ValueId> alikeFor;
  std::vector<bool> isFromParts;   ///< by value: the same on all ranks, but each computes it from its own part
  std::vector<bool> sumsOperands;  ///< by node: different work on each rank that passes gradients to its operands
};

GradientFacts findGradientFacts(const Lowered& inference, const TrainedGraph& trained);

}  // namespace cleave::plan
