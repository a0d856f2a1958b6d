#pragma once
// clang-format off
/// What the backward pass of a rank program is, derived from the program alone: how each value, and its gradient,
/// stands to the same value on the other ranks, and which collectives that takes.
///
/// | type       | the value on the ranks | who reads it           | its gradient on the ranks                         |
/// |------------|------------------------|------------------------|---------------------------------------------------|
/// | invariant  | the same               | the same work on each  | the same: of the whole                            |
/// | replicated | the same               | different work on each | partial: their sum is that of the whole           |
/// | varying    | each rank its own      |                        | each rank its own                                 |
/// | partial    | its sum is the value   | a reduction            | the same: that of the sum                         |
///
/// (Types of "local SPMD", meta-pytorch/spmd_types, docs/local_spmd_types.md; Megatron-LM's f and g, arXiv:1909.08053,
/// are the steps from invariant to replicated and from partial to invariant.) A step between types has one backward:
///
/// | operator        | forward               | backward                                                              |
/// |-----------------|-----------------------|-----------------------------------------------------------------------|
/// | all_reduce      | partial → invariant   | nothing                                                               |
/// | reduce_scatter  | partial → varying     | all-gather                                                            |
/// | all_gather      | varying → invariant   | each rank takes its part                                              |
/// | gather_input    | varying → invariant   | the same, with a grad_all_reduce behind it a reduce-scatter; gathers  |
/// |                 |                       | again what layers need for their weights                              |
/// | shard           | invariant → varying   | all-gather                                                            |
/// | same            | varying → invariant   | each rank takes one share of as many as there are ranks               |
/// | grad_all_reduce | invariant → replicated | all-reduce; of a parameter: at the end of the step, all in one bucket |
/// | of a parameter that ranks share | varying → varying | a sum over those that hold the same elements              |
///
/// Any other operator does different work where it reads something that varies, or where it depends on the rank
/// (vocab_embedding, local_experts): then whatever it reads of the same value on all ranks must be replicated.
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
  graph::NodeId node;  ///< of the program: whose backward performs it, or which runs again; invalid: the bucket at the
                       ///< end of the step
  int ranks = 0;       ///< that take part, neighbours of which the first is a multiple of their number
  bool operator==(const BackwardCollective&) const = default;
};

/// Gradients of a parameter that several ranks hold are added up at the end of the step, those of all parameters
/// together: what one parameter adds to that bucket.
struct GradientSum {
  graph::ValueId parameter;
  int ranks = 0;  ///< neighbours that hold the same
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

/// BadInput, naming the value and who reads it: the program's backward pass would need a collective that it does not
/// have, or has one that would make a gradient wrong; or it has no loss. `checkpointed`: blocks that run again
/// (graph/checkpoints.h).
Result<Backward> backwardOf(const graph::Graph& program, const ShardMap& parameters, int ranks,
                            const std::vector<std::string>& checkpointed = {});

/// Whether a gather_input's result is read by linear layers alone, one of which needs it for its weight's gradient: it
/// is not kept.
bool isGatheredAgain(const graph::Graph& program, const graph::Gradients& gradients, graph::ValueId gathered);
/// The gathered input of a layer that keeps its part alone and gathers again for the gradient of its weight; invalid:
/// the node is no such layer.
graph::ValueId gatheredAgain(const graph::Graph& program, const graph::Gradients& gradients, graph::NodeId node);
/// What a value is through a grad_all_reduce: its operand, or the value itself.
graph::ValueId behindGradientSum(const graph::Graph& program, graph::ValueId value);

}  // namespace cleave::program
