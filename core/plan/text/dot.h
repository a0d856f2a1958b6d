#pragma once
#include "plan/plan.h"

#include <string>

namespace cleave::plan {

/// Graphviz text of the ATen graph coloured by placement, grouped by module.
std::string toDot(const Plan& plan);

}  // namespace cleave::plan
