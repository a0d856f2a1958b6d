#pragma once
/// How long ranks wait for each other. No LibTorch in this header.
#include <chrono>

namespace cleave::torch_rank {

/// For one collective: enough for a step of the largest model; c10d's own default.
inline constexpr std::chrono::seconds kCallTimeout{600};

}  // namespace cleave::torch_rank
