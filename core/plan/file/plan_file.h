#pragma once
/// Writes and reads plan files.
#include "base/files.h"
#include "base/schema_rows.h"
#include "plan/plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::plan {

/// Schema "cleave.plan/1" (the contract of `cleave-cli plan --json`), deterministic but for `timings_ms`.
/// Holds the rank program too, so that `cleave-rank` needs nothing else but the weights.
std::string toJson(const Plan& plan);
/// The same with its seal: for files that users keep.
std::string toSealedJson(const Plan& plan);
/// Reads a plan file again (layout: plan_schema.h). Foreign input: bounded and versioned; the rank program as
/// program::rankProgramFromJson checks it; collectives and types as the program has them. The memory prediction is
/// computed again.
Result<Plan> planFromJson(std::string_view text);
/// The same of a file; errors name it.
Result<Plan> readPlanFile(const fs::path& file);

/// The fields of a plan file, and of each `standing` in it, for docs/file-formats.md.
std::vector<schema::Row> planRows();
std::vector<schema::Row> standingRows();

}  // namespace cleave::plan
