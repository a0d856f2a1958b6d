#pragma once
// clang-format off
/// The backward pass of a rank program, derived from the program alone: how each value and its gradient relate to the
/// same value on the other ranks, and which collectives that requires.
///
/// | type       | the value on the ranks | who reads it           | its gradient on the ranks                         |
/// |------------|------------------------|------------------------|---------------------------------------------------|
/// | invariant  | the same               | the same work on each  | the same: that of the whole                       |
/// | replicated | the same               | different work on each | partial: their sum is that of the whole           |
/// | varying    | different on each rank |                        | different on each rank                            |
/// | partial    | its sum is the value   | a reduction            | the same: that of the sum                         |
///
/// (Types of "local SPMD", meta-pytorch/spmd_types, docs/local_spmd_types.md; Megatron-LM's f and g, arXiv:1909.08053,
/// are the steps from invariant to replicated and from partial to invariant.) Each step between types has one backward:
///
/// | operator        | forward               | backward                                                              |
/// |-----------------|-----------------------|-----------------------------------------------------------------------|
/// | all_reduce      | partial → invariant   | no collective                                                         |
/// | reduce_scatter  | partial → varying     | all-gather                                                            |
/// | all_gather      | varying → invariant   | each rank takes its part                                              |
/// | gather_input    | varying → invariant   | the same, or a reduce-scatter if a grad_all_reduce follows; gathers   |
/// |                 |                       | again what layers need for their weights                              |
/// | shard           | invariant → varying   | all-gather                                                            |
/// | same            | varying → invariant   | each rank takes an equal share                                        |
/// | grad_all_reduce | invariant → replicated | all-reduce; of a parameter: at the end of the step, all in one bucket |
/// | of a parameter that ranks share | varying → varying | a sum over the ranks with the same elements               |
///
/// Any other operator does different work on each rank if it reads a varying value or depends on the rank
/// (vocab_embedding, local_experts). The values it reads that are equal on all ranks must then be replicated.
// clang-format on
#include "program/collectives.h"
#include "program/shard_map.h"

#include "graph/checkpoints.h"
#include "graph/gradients.h"

#include <string_view>
#include <vector>

namespace cleave::program {

enum class SpmdType : std::uint8_t { Invariant, Replicated, Varying, Partial };
std::string_view toText(SpmdType type);  ///< "invariant"

/// A collective of the backward pass.
struct BackwardCollective {
  Collective collective;
  graph::NodeId node;  ///< node of the program whose backward pass performs it, or which runs again; invalid: the
                       ///< bucket at the end of the step
  int ranks = 0;       ///< number of ranks; they are neighbours, and the first is a multiple of that number
  bool operator==(const BackwardCollective&) const = default;
};

/// One parameter's contribution to the gradient sums at the end of the step. Gradients of parameters that several ranks
/// share are summed in buckets over all parameters.
struct GradientSum {
  graph::ValueId parameter;
  int ranks = 0;  ///< number of neighbouring ranks with the same part
  int dim = -1;   ///< -1: all of it; else the part of that dimension of the local shape
  std::int64_t start = 0, length = 0;
  std::int64_t elements = 0;
};

struct Backward {
  graph::Gradients gradients;
  graph::Checkpoints checkpoints;
  std::vector<SpmdType> types;                  ///< by ValueId
  std::vector<BackwardCollective> collectives;  ///< in the order in which a rank performs them
  std::vector<GradientSum> sums;                ///< by number of ranks and element type: each is one all-reduce
};

/// BadInput, naming the value and its reader, if the program's backward pass lacks a collective, has one that makes a
/// gradient wrong, or the program has no loss. `checkpointed`: blocks that run again (graph/checkpoints.h).
Result<Backward> backwardOf(const graph::Graph& program, const ShardMap& parameters, int ranks,
                            const std::vector<std::string>& checkpointed = {});

/// True if only linear layers read a gather_input's result, and one of them needs it for its weight's gradient. The
/// result is then not kept.
bool isGatheredAgain(const graph::Graph& program, const graph::Gradients& gradients, graph::ValueId gathered);
/// The gathered input of a layer that keeps only its part and gathers again for the gradient of its weight; invalid:
/// the node is not such a layer.
graph::ValueId gatheredAgain(const graph::Graph& program, const graph::Gradients& gradients, graph::NodeId node);
/// The operand if the value is a grad_all_reduce, else the value itself.
graph::ValueId withoutGradientSum(const graph::Graph& program, graph::ValueId value);

}  // namespace cleave::program
