#pragma once
/// Reasons of replication in plan files; reason_schema.h lists their fields. Internal to this room.
#include "base/json.h"
#include "base/json_writer.h"
#include "plan/replication_reason.h"

#include <optional>
#include <string>
#include <string_view>

namespace cleave::plan {

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

}  // namespace cleave::plan
