#pragma once
#include "plan/plan.h"

#include <string>
#include <vector>

namespace cleave::plan {

/// Layers whose weights stay replicated because that costs less, a sentence for equal ones; what else stays replicated
/// is a warning.
std::vector<std::string> replicatedByChoice(const Plan& plan);

/// Facts to know before a run: nothing is split, or large layers are replicated.
std::vector<std::string> warningsFor(const Plan& plan);

}  // namespace cleave::plan
