#pragma once
/// Runs the experts of a mixture, token by token (graph::kMoeExperts). Uses LibTorch.
#include "base/result.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace cleave::bridge {

struct ExpertsCall {
  at::Tensor hidden;            ///< [tokens, hidden]
  at::Tensor ids, shares;       ///< [tokens, k]: the experts of each token, and their factors
  at::Tensor gateUp, down;      ///< in the layout of graph::ParallelOp::MoeExperts for the activation
  std::string_view activation;  ///< silu, gelu, gelu_tanh, quick_gelu, relu, relu2, tanh, sigmoid or clamped_swiglu
  std::optional<at::Tensor> gateUpBias;
  double alpha = 1, limit = 0;  ///< of clamped_swiglu
  std::int64_t experts = 0;     ///< number of experts on all ranks
  std::int64_t first = 0;       ///< index of this rank's first expert; tokens of other experts add zero
};

/// Returns [tokens, hidden]: a partial sum if the rank has a part of the experts or of their features. BadInput for an
/// expert outside [0, experts) and for an unknown activation.
Result<at::Tensor> runExperts(const ExpertsCall& call);

/// Calls `cleave::moe_experts` through LibTorch's dispatcher, for a model's code, with the arguments in the order of
/// graph::kMoeExperts. Registers it on the first call. Throws c10::Error if runExperts fails.
at::Tensor callExperts(const ExpertsCall& call);

}  // namespace cleave::bridge
