#pragma once
/// The gradient of a value in a plan for training: its placement, and the collectives that sum it.
#include "plan/plan.h"

namespace cleave::plan {

/// Sentences about a value of the ATen graph. Empty if the plan is not for training, or cannot be trained:
///
///     "All ranks hold it alike and do different work with it (linear_0, linear_1, linear_2): each has a part of its
///      gradient, and an all_reduce of 16.0 KiB adds them up."
std::string gradientText(const Plan& plan, ValueId value);

}  // namespace cleave::plan
