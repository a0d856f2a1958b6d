#pragma once
/// ATen's operators on the simulated GPU: CPU kernels that run later on the current stream.
#include <ATen/core/ivalue.h>

#include <functional>

namespace simulated_gpu {

/// Replaces each tensor in a value, including those in lists.
c10::IValue withTensors(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace);
void eachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);

}  // namespace simulated_gpu
