#pragma once
/// Shares in plan files; replication_schema.h lists their fields. Internal to this room.
#include "base/json.h"
#include "plan/shares.h"

namespace cleave::plan {

/// Reads the replicated work and its reasons. The sums are computed, not read.
Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares);

}  // namespace cleave::plan
