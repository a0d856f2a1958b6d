#pragma once
/// Time limits of the ranks. This header does not use LibTorch.
#include <chrono>

namespace cleave::torch_rank {

/// The limit of one collective. It covers a step of the largest model and is c10d's default.
inline constexpr std::chrono::seconds kCallTimeout{600};

}  // namespace cleave::torch_rank
