#pragma once
/// The second step of `replace`, for training on more than one rank: adds what the backward pass needs to an inference
/// program (lowering.h). gradient_facts.h explains where and why. Pure.
///
/// Three changes, each an identity in the forward pass, so shapes and results stay:
///
///  - `X.summed = grad_all_reduce(X)` directly before the first call that does different work on each rank and reads X.
///    All such calls read X.summed; others still read X. There is at most one sum of a value.
///  - `X = same(X.own)` directly after X, if each rank computes X from its own part. All readers read the result.
///  - An all_gather of a plain split for layers that need the whole becomes a gather_input. The backward pass then
///    gathers it again instead of saving it (arXiv:2205.05198, section 4.2.2).
///
///     relu_0 = aten::relu(mul_0)                             relu_0 = aten::relu(mul_0)
///     linear_0 = aten::linear(relu_0, up.weight, None)   →   relu_0.summed = cleave::grad_all_reduce(relu_0)
///                                                            linear_0 = aten::linear(relu_0.summed, up.weight, None)
///
/// Without the added nodes the result is the inference program: all other nodes have the same order, types, names and
/// arguments. program/backward.h checks the result independently.
#include "plan/build/gradient_facts.h"
#include "plan/build/lowered.h"

namespace cleave::plan {

Result<Lowered> addGradientSums(const Lowered& inference, const TrainedGraph& trained);

}  // namespace cleave::plan
