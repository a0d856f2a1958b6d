#pragma once
/// Whether a JSON file still says what it said when it was written: 16 hexadecimal digits of all its values.
///
/// Only names and values count. Spacing, escapes, the order of members and the way a number is written do not (1.0 and
/// 1 are one number), so that a file which went through another JSON library keeps its seal. The members "seal" and
/// "timings_ms" of the object itself are left out: the same input gives the same seal. It finds what was changed by
/// accident or by hand, and is no protection against anyone who writes another seal: `check` makes a plan again.
/// resources/python/cleave_torch/plan_file.py computes the same.
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace cleave {

inline constexpr std::string_view kSealKey = "seal", kTimingsKey = "timings_ms";

std::string sealOf(const nlohmann::json& object);
/// `json`, the text of an object, with its seal as the last member.
std::string withSeal(std::string json);

}  // namespace cleave
