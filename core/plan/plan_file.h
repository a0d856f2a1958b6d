#pragma once
/// A plan file on disk.
#include "plan/plan.h"

#include <filesystem>

namespace cleave::plan {

/// `planFromJson` of a file; errors name it.
Result<Plan> readPlanFile(const std::filesystem::path& file);

}  // namespace cleave::plan
