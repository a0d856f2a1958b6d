#pragma once
/// Recognizes and reads plan files.
#include "base/result.h"
#include "plan/plan.h"

#include <filesystem>
#include <memory>
#include <string>

namespace cleave::pipeline {

/// False for other files, and for files that cannot be opened.
bool isPlanFile(const std::string& path);
/// Also reads a plan that was changed after Cleave wrote it: its run does not pass, and a bisection finds the
/// difference.
Result<std::shared_ptr<const plan::Plan>> readPlanFile(const fs::path& file);
/// The same for callers that use the figures or placements unchecked: BadInput if the file was changed.
Result<std::shared_ptr<const plan::Plan>> readUnalteredPlan(const fs::path& file);
/// True for a plan of another library, and for a JSON file of an unknown kind.
bool isForeignPlan(const std::string& path);

}  // namespace cleave::pipeline
