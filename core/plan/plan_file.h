#pragma once
/// A plan file on disk.
#include "base/json.h"
#include "plan/plan.h"

#include <filesystem>

namespace cleave::plan {

inline constexpr JsonLimits kPlanLimits{
    .bytes = std::int64_t{1} << 30, .depth = 32, .elements = 8'000'000, .allowsWideIntegers = true};

/// The same for all files of one plan: what ranks must agree on. Left out is what may differ from host to host: where
/// the model lies, and timings.
std::uint64_t digestOf(const Plan& plan);

/// `planFromJson` of a file; errors name it.
Result<Plan> readPlanFile(const std::filesystem::path& file);

}  // namespace cleave::plan
