#pragma once
/// Whether a plan's file still says what it said when it was written: 16 hexadecimal digits of all its values.
///
/// Only names and values count. Spacing, escapes, the order of members and the way a number is written do not (1.0 and
/// 1 are one number), so that a file which another JSON library wrote anew keeps its seal. The measured fields
/// (plan_fields.h) do not count either, so that the same input gives the same seal. It finds changes by accident or by
/// hand, and does not protect against anyone who writes another seal: `check` makes a plan again.
/// resources/python/cleave_torch/plan_file.py computes the same.
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace cleave::plan {

inline constexpr std::string_view kSealKey = "seal";

std::string sealOf(const nlohmann::json& plan);
/// `json`, the text of a plan, with its seal as the last member.
std::string withSeal(std::string json);

}  // namespace cleave::plan
