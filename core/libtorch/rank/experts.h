#pragma once
/// The experts of a mixture, run token by token (graph::kMoeExperts). LibTorch inside.
#include "base/result.h"

#include <ATen/core/Tensor.h>

#include <string_view>

namespace cleave::torch_rank {

struct ExpertsCall {
  at::Tensor hidden;            ///< [tokens, hidden]
  at::Tensor ids, shares;       ///< [tokens, k]: which experts a token goes to, and what each counts
  at::Tensor gateUp, down;      ///< [held, 2 features, hidden], [held, hidden, features]
  std::string_view activation;  ///< silu, gelu, gelu_tanh or relu
  std::int64_t experts = 0;     ///< of all ranks
  std::int64_t first = 0;       ///< number of the first expert held here; tokens of others add nothing
};

/// [tokens, hidden], a partial sum where a rank holds a part of the experts or of their features. BadInput for an
/// expert outside [0, experts) and for an unknown activation.
Result<at::Tensor> runExperts(const ExpertsCall& call);

}  // namespace cleave::torch_rank
