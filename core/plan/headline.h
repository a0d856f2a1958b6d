#pragma once
/// What is told of a plan before all else, in words: its time and how many of its layers are replicated, for
/// which causes. The command line and the window say it with these words, so that they cannot differ.
///
///     fmt::print("predicted: {}\n{}\n", predictedText(plan), replicatedText(replicatedLayers(plan)));
#include "plan/plan.h"

namespace cleave::plan {

/// "51.5 µs a training step on 8 × h100 (49.1 µs of it collectives)".
std::string predictedText(const Plan& plan);

/// "The plan's 650 KiB per rank also count what one forward pass does not keep: 64 KiB KV cache."; empty: they count
/// nothing more.
std::string notKeptText(const Plan& plan);

/// "Dropout is off: config.json has attn_pdrop 0.1; --dropout on trains with it."; empty: it is on, or a training step
/// of the model drops nothing.
std::string dropoutOffText(const Plan& plan);

/// Where sequence parallelism is on and the plan splits no sequence: that, and why where it is known. Else empty.
std::string idleSequenceText(const Plan& plan);

/// The kinds of Standing; what is not asked for, by settings or because the engine takes the first plan that it finds.
enum class ReplicatedCause : std::uint8_t {
  Cannot,
  CannotAsRead,
  OverBudget,
  DoesNotPay,
  NotAskedFor,
  FirstFound,
  NotKnown
};

/// Of what is not split.
ReplicatedCause causeOf(const Standing& standing);

/// Layers with weights that every rank holds in full, for causes of one kind.
struct ReplicatedLayers {
  ReplicatedCause why = ReplicatedCause::NotKnown;
  std::size_t count = 0;
  NodeId first;  ///< in graph order
};
/// In the order of ReplicatedCause; empty when all layers are split, and on one rank.
std::vector<ReplicatedLayers> replicatedLayers(const Plan& plan);

/// "3 cannot be split", "1 does not pay to split".
std::string toText(const ReplicatedLayers& layers);
/// "4 layers are replicated on every rank: 3 cannot be split, 1 does not pay to split"; empty: none is.
std::string replicatedText(const std::vector<ReplicatedLayers>& layers);

}  // namespace cleave::plan
