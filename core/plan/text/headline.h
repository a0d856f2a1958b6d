#pragma once
/// The main facts of a plan as text: its step time, and how many layers are replicated, and why. The command line and
/// the window print the same text.
///
///     fmt::print("predicted: {}\n{}\n", predictedText(plan), replicatedText(replicatedLayers(plan)));
#include "plan/plan.h"

namespace cleave::plan {

/// "51.5 µs a training step on 8 × h100 (49.1 µs of it collectives)".
std::string predictedText(const Plan& plan);

/// "The plan's 650 KiB per rank include memory that one forward pass does not use: 64 KiB KV cache."; empty if a
/// forward pass uses all of it.
std::string notKeptText(const Plan& plan);

/// "Dropout is off: config.json has attn_pdrop 0.1. --dropout on trains with it."; empty if dropout is on, or if the
/// model has no dropout.
std::string dropoutOffText(const Plan& plan);

/// A clause with the reason if sequence parallelism is on and the plan splits no sequence; else empty.
std::string idleSequenceText(const Plan& plan);

/// The kinds of ReplicationReason. NotAskedFor is two kinds: settings, or an engine that keeps the first plan it finds.
enum class ReplicatedCause : std::uint8_t {
  Cannot,
  CannotAsRead,
  OverBudget,
  DoesNotPay,
  NotAskedFor,
  FirstFound,
  NotKnown
};

/// The kind of a reason that is not Split.
ReplicatedCause causeOf(const ReplicationReason& replication);

/// Layers with replicated weights, with causes of one kind.
struct ReplicatedLayers {
  ReplicatedCause why = ReplicatedCause::NotKnown;
  std::size_t count = 0;
  NodeId first;  ///< in graph order
};
/// In the order of ReplicatedCause; empty if all layers are split, and on one rank.
std::vector<ReplicatedLayers> replicatedLayers(const Plan& plan);

/// "3 cannot be split", "1 does not gain time or memory when split".
std::string toText(const ReplicatedLayers& layers);
/// "4 layers are replicated: 3 cannot be split, 1 does not gain time or memory when split"; empty if all are split.
std::string replicatedText(const std::vector<ReplicatedLayers>& layers);

}  // namespace cleave::plan
