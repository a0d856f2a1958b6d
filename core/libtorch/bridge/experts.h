#pragma once
/// The experts of a mixture, run token by token (graph::kMoeExperts). LibTorch inside.
#include "base/result.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace cleave::bridge {

struct ExpertsCall {
  at::Tensor hidden;            ///< [tokens, hidden]
  at::Tensor ids, shares;       ///< [tokens, k]: which experts a token goes to, and what each counts
  at::Tensor gateUp, down;      ///< as graph::ParallelOp::MoeExperts says of the activation
  std::string_view activation;  ///< silu, gelu, gelu_tanh, quick_gelu, relu, relu2, tanh, sigmoid or clamped_swiglu
  std::optional<at::Tensor> gateUpBias;
  double alpha = 1, limit = 0;  ///< of clamped_swiglu
  std::int64_t experts = 0;     ///< of all ranks
  std::int64_t first = 0;       ///< number of the first expert held here; tokens of others add nothing
};

/// [tokens, hidden], a partial sum where a rank holds a part of the experts or of their features. BadInput for an
/// expert outside [0, experts) and for an unknown activation.
Result<at::Tensor> runExperts(const ExpertsCall& call);

/// `cleave::moe_experts` in LibTorch's dispatcher, for a model's code: the arguments in the order of
/// graph::kMoeExperts. Registers it on the first call. Throws c10::Error where runExperts fails.
at::Tensor callExperts(const ExpertsCall& call);

}  // namespace cleave::bridge
