#pragma once
/// Limits of plan files.
#include "base/json.h"

namespace cleave::program {

inline constexpr std::string_view kPlanSchema = "cleave.plan/1";
inline constexpr JsonLimits kPlanLimits{
    .bytes = std::int64_t{1} << 30, .depth = 32, .elements = 8'000'000, .allowsWideIntegers = true};
inline constexpr int kMaxRanks = 4096;
inline constexpr std::size_t kMostPathBytes = 4096;  ///< of the model's path or Hub id; PATH_MAX of Linux
/// Largest size, count or offset accepted from a file. It leaves room for sums of a few.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 60;

}  // namespace cleave::program
