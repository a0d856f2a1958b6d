#pragma once
/// The header of a trace file as JSON. It has everything except the events.
#include "base/schema_rows.h"
#include "solve/trace/trace.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

struct TraceTables {
  std::optional<Engine> engine;
  std::shared_ptr<const Problem> problem;
  std::vector<Choice> choices;
  std::vector<ConflictRecord> conflicts;
};

std::string toJsonText(const Trace& trace);
/// BadInput names the path of the first wrong field ("choices[3].results[0]: ...").
Result<TraceTables> traceTablesFromJson(const std::string& text);
/// The fields of the header, for docs/file-formats.md.
std::vector<schema::Row> traceHeaderRows();

}  // namespace cleave::solve
