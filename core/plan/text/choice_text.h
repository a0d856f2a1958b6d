#pragma once
#include "plan/plan.h"

#include <string>

namespace cleave::plan {

/// Why `optimal` chose this plan, by time and memory: "the fastest of all plans", "least memory among all plans within
/// 1 % of the fastest. The fastest is …"; and what is not proved. Empty for another engine.
std::string choiceInWords(const Plan& plan);
/// "proved": no plan within the budget is faster than the fastest that was found. Else "within 0.8 % of the lower
/// bound", or "not proved" if no bound is known. Empty for another engine.
std::string proofInWords(const Plan& plan);

}  // namespace cleave::plan
