#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

/// Tensors in the order of a graph's outputs.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace cleave::torch_rank
