#pragma once
// clang-format off
/// Reasons and shares in plan files. Internal to this room.
///
///   standing  {kind: "split" | "not_known"}, {kind: "cannot", why, unless_redistributed,
///             with_redistribution [{kind, argument}]}, {kind: "does_not_pay", extra_fs, extra_bytes,
///             fast_enough, over_budget, proved} or
///             {kind: "not_asked_for", changes [{kind, argument}], extra_fs, why,
///             budget: "fits" | "over" | "not_known"}
///   shares    {split_layers, gathered_layers, layers, largest_replicated, flops, rank_flops, flops_share,
///             weight_bytes, rank_weight_bytes, weight_share,
///             compute_fs,
///              replicated_fs, replicated [{modules, module_count, modules_like, ops [text], count, flops,
///              femtoseconds, first, standing}]}
// clang-format on
#include "base/json.h"
#include "base/json_writer.h"
#include "plan/shares.h"

namespace cleave::plan {

void writeReplication(JsonWriter& json, const ReplicationReason& replication);
/// Reads `fields.standing`. NotKnown if it is absent, as in plans of early versions.
Result<ReplicationReason> readReplication(const JsonObject& fields);

void writeShares(JsonWriter& json, const Shares& shares, const graph::Graph& graph);
/// Reads the replicated work and its reasons. The sums are computed, not read.
Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares);

}  // namespace cleave::plan
