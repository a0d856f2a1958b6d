#pragma once
/// Reasons and shares in plan files; replication_schema.h lists their fields. Internal to this room.
#include "base/json.h"
#include "base/json_writer.h"
#include "plan/shares.h"

#include <optional>
#include <string>
#include <string_view>

namespace cleave::plan {

/// The words of the file for a kind of change, and for a budget.
std::string_view changeText(solve::ChangeKind kind);
std::optional<solve::ChangeKind> parseChange(std::string_view text);
std::string_view fitText(BudgetFit fit);
std::optional<BudgetFit> parseFit(std::string_view text);

void writeReplication(JsonWriter& json, const ReplicationReason& replication);
/// `fields`: the object "standing".
Result<ReplicationReason> readReplication(const JsonObject& fields);

/// The form of a reason (base/schema_forms.h).
struct ReplicationForm {
  std::optional<ReplicationReason> absent = NotKnown{};  ///< in plans of early versions
  std::string type() const { return "object"; }
  void write(JsonWriter& out, const ReplicationReason& reason) const { writeReplication(out, reason); }
  Result<ReplicationReason> read(const JsonObject& object, std::string_view key) const;
};

/// Reads the replicated work and its reasons. The sums are computed, not read.
Result<void> readReplicated(const JsonObject& root, const graph::Graph& graph, Shares& shares);

}  // namespace cleave::plan
