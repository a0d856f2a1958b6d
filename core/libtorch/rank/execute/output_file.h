#pragma once
#include "base/result.h"
#include "libtorch/rank/execute/named_tensors.h"

#include <filesystem>

namespace cleave::torch_rank {

/// Writes the tensors to one safetensors file atomically, through copies on the CPU. Returns BadInput for an element
/// type that safetensors does not support.
Result<void> writeOutputs(const NamedTensors& outputs, const std::filesystem::path& file);

}  // namespace cleave::torch_rank
