#pragma once
// clang-format off
/// Standings and shares as plan files keep them. Internal to this room.
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

void writeStanding(JsonWriter& json, const Standing& standing);
/// Of `fields.standing`; a plan of an earlier program has none: nothing is known.
Result<Standing> readStanding(const JsonObject& fields);

void writeShares(JsonWriter& json, const Shares& shares, const graph::Graph& graph);
/// The work that is replicated and why, as the program that made the plan found; the sums are computed again.
Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares);

}  // namespace cleave::plan
