#pragma once
/// Cleave's own operators of a rank program: what each computes, its arguments, and its name. Their rows are in the
/// table of operators (operators.h).
#include <cstdint>
#include <string_view>

namespace cleave::graph {

/// Cleave's own operators of a rank program, besides ATen's.
enum class ParallelOp : std::uint8_t {
  AllReduce,          ///< (x): the sum over the ranks; may reuse x's memory, since no later node reads x
  AllGather,          ///< (x, dim): the ranks' parts, concatenated along dim
  GatherInput,        ///< (x, dim): the same for a layer's input that training gathers again for the backward pass
                      ///< instead of saving it
  ReduceScatter,      ///< (x, dim): the sum over the ranks; each keeps its part of dim
  Shard,              ///< (x, dim): this rank's part of a replicated tensor
  VocabEmbedding,     ///< rows of this rank's part of the vocabulary (rank r holds rows from r * weight.size(0)),
                      ///< zeros for other ids: a partial sum
  VocabCrossEntropy,  ///< the loss from logits [N, local] split on the vocabulary; columns from vocab on are padding
  MoeExperts,      ///< for each token the sum over its experts e of share · down[e] · (activation(gate) · up), where
                   ///< gate and up are the halves of gate_up[e] · hidden + gate_up_bias[e]; a partial sum if each
                   ///< expert's features are split. With activation clamped_swiglu gate_up is [experts, hidden, 2
                   ///< features] with alternating gate and up, and down is [experts, features, hidden]: then share ·
                   ///< ((up + 1) · gate · sigmoid(alpha · gate)) · down[e], gate at most limit, up within ±limit
  LocalExperts,    ///< the same with this rank's experts out of `experts` (rank r has those from r * gate_up.size(0)):
                   ///< a partial sum
  GroupedProduct,  ///< input [rows, in], weight [groups, in, out], ends [groups] → [rows, out]: rows from ends[g - 1]
                   ///< (0 for the first group) to ends[g] times weight[g]; rows after the last end are zero
  GradAllReduce,   ///< (x): the identity; backward a sum of the gradient over the ranks (Megatron's f), for a parameter
                   ///< over the ranks that replicate it
  Dropout,  ///< (x, chance, stream, shape, placement): x with some elements 0 and the others divided by 1 - chance. The
            ///< element's index in the unsplit tensor (`shape`) decides, and `placement` is this rank's part of it;
            ///< `stream` numbers the dropouts of a model
  Same,     ///< (x): the identity for a value that all ranks compute alike, each from its own data; backward each rank
            ///< uses its equal share of the gradient
};

enum class ArgumentKind : std::uint8_t { Tensor, TensorOrNone, Integer, Number, Absent, Text, Sizes };

struct ArgumentRow {
  std::string_view name;
  ArgumentKind kind = ArgumentKind::Tensor;
};

inline constexpr std::string_view kAllReduce = "cleave::all_reduce";
inline constexpr std::string_view kAllGather = "cleave::all_gather";
inline constexpr std::string_view kGatherInput = "cleave::gather_input";
inline constexpr std::string_view kReduceScatter = "cleave::reduce_scatter";
inline constexpr std::string_view kShard = "cleave::shard";
inline constexpr std::string_view kVocabEmbedding = "cleave::vocab_embedding";
inline constexpr std::string_view kVocabCrossEntropy = "cleave::vocab_cross_entropy";
inline constexpr std::string_view kMoeExperts = "cleave::moe_experts";
inline constexpr std::string_view kLocalExperts = "cleave::local_experts";
inline constexpr std::string_view kGroupedProduct = "cleave::grouped_product";
inline constexpr std::string_view kGradAllReduce = "cleave::grad_all_reduce";
inline constexpr std::string_view kSame = "cleave::same";
inline constexpr std::string_view kDropout = "cleave::dropout";

inline constexpr std::string_view kClampedSwiglu = "clamped_swiglu";  ///< an activation of experts

}  // namespace cleave::graph
