#pragma once
/// The first step of `replace`: from the ATen graph and a solution to a rank program for forward passes. Pure.
///
/// Each ATen node becomes the same operator on local shapes, or the calls of its strategy (lower_layers.h). Collectives
/// are there where a layer's strategy or a redistribution requires them, where a layer needs all of a split value, and
/// where an output is gathered. Nothing here depends on gradients; gradient_sums.h adds what training needs.
///
///     x: f32[1,4,8] = input                             linear_1.partial = aten::linear(relu_0, down.weight, None)
///     ...                                           →   linear_1.reduced = cleave::all_reduce(linear_1.partial)
///     linear_1 = aten::linear(relu_0, down.weight, b)   linear_1 = aten::add.Tensor(linear_1.reduced, b, 1)
#include "plan/build/lowered.h"
#include "plan/build/plan_request.h"

namespace cleave::plan {

/// `outputs`: those of the ATen graph that the program returns. BadInput, naming the value, if a value cannot be
/// divided as the solution says, or cannot go from one placement to another.
Result<Lowered> lower(const PlanRequest& request, const std::vector<graph::Output>& outputs);

}  // namespace cleave::plan
