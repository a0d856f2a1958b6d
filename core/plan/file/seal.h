#pragma once
/// The seal of a plan file shows that the file was not changed: 16 hexadecimal digits, a digest of all its values.
///
/// Only names and values count. Spacing, escapes, the order of members and the way a number is written do not (1.0 and
/// 1 are one number), so a file that another JSON library writes again keeps its seal. Measured fields (plan_fields.h)
/// do not count either, so the same input gives the same seal. A seal finds accidental and manual changes. It does not
/// protect against someone who writes a new seal: `check` makes the plan again.
/// resources/python/cleave_torch/plan_file.py computes the same seal.
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace cleave::plan {

inline constexpr std::string_view kSealKey = "seal";

std::string sealOf(const nlohmann::json& plan);
/// `json`, the text of a plan, with its seal as the last member.
std::string withSeal(std::string json);

}  // namespace cleave::plan
