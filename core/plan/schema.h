#pragma once
/// Words and limits that the writer and the reader of plan files share. Internal to this room.
#include "base/json.h"
#include "plan/plan.h"

#include <optional>
#include <string_view>

namespace cleave::plan {

/// Not negative, and of any size: JSON's integers beyond 64 bits are read as floating point. `what`: "a number of
/// FLOPs".
Result<Wide> readWide(const JsonObject& fields, const char* key, std::string_view what);
/// The same of a time.
Result<Femtoseconds> readTime(const JsonObject& fields, const char* key);
/// What one time is more than another; negative: less.
Result<Femtoseconds> readTimeDifference(const JsonObject& fields, const char* key);

std::string_view kindText(graph::LayerKind kind);  ///< "linear", "embedding", "cross_entropy"
std::optional<graph::LayerKind> parseKind(std::string_view text);
std::string_view sourceText(graph::NodeKind kind);  ///< "input", "parameter", "constant"; "call"

}  // namespace cleave::plan
