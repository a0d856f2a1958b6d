#pragma once
/// Cleave's own operators of a rank program, beside ATen's, and the collectives that each performs.
///
///   all_reduce(x)                  the sum over the ranks; may reuse x's memory, which nothing reads after
///   all_gather(x, dim)             the ranks' parts one behind the other along dim
///   reduce_scatter(x, dim)         the sum over the ranks, of which each keeps its part of dim
///   shard(x, dim)                  this rank's part of a tensor that every rank holds whole
///   vocab_embedding(weight, ids, vocab, padding_idx)
///                                  rows of this rank's part of the vocabulary (rank r holds rows from
///                                  r * weight.size(0)), zeros for other ids: a partial sum
///   vocab_cross_entropy(logits, target, class_weights, reduction, ignore_index, label_smoothing, vocab)
///                                  the loss from logits [N, local] split on the vocabulary; columns from vocab on are
///                                  padding
///   moe_experts(hidden, topk_ids, topk_weights, gate_up, down, activation)
///                                  see graph/operators.h; on a part of each expert's features a partial sum
///   local_experts(..., activation, experts)
///                                  the same with this rank's experts out of `experts` (rank r holds those from
///                                  r * gate_up.size(0)): a partial sum
///   grad_all_reduce(x)             the identity; backward an all-reduce of the gradient (Megatron's f)
#include "graph/graph.h"
#include "rules/strategies.h"

#include <string_view>
#include <vector>

namespace cleave::program {

inline constexpr std::string_view kAllReduce = "cleave::all_reduce";
inline constexpr std::string_view kAllGather = "cleave::all_gather";
inline constexpr std::string_view kReduceScatter = "cleave::reduce_scatter";
inline constexpr std::string_view kShard = "cleave::shard";
inline constexpr std::string_view kVocabEmbedding = "cleave::vocab_embedding";
inline constexpr std::string_view kVocabCrossEntropy = "cleave::vocab_cross_entropy";
inline constexpr std::string_view kLocalExperts = "cleave::local_experts";
inline constexpr std::string_view kGradAllReduce = "cleave::grad_all_reduce";

/// One collective that an operator performs.
struct Collective {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;  ///< of the whole tensor being reduced, gathered or scattered (not of one rank's part)
  bool operator==(const Collective&) const = default;
};

/// What a node of a rank program performs in the forward pass, in order; empty for most. What ranks count must equal
/// these. all_reduce and reduce_scatter perform one of x, all_gather one of its result, vocab_cross_entropy three
/// all-reduces of N reals each: row maxima (max), sums of exponentials (sum), target logits (sum); the reals are f32,
/// f64 for f64 logits.
std::vector<Collective> collectivesOf(const graph::Graph& program, graph::NodeId node);

}  // namespace cleave::program
