#pragma once
/// Shared by the parts of the runtime's shim.
#include <cuda_runtime_api.h>

namespace cleave::shims {

/// Remembers `error` for cudaGetLastError, and returns it.
cudaError_t failed(cudaError_t error);
/// Failure when the driver is missing or too old, or there is no device.
cudaError_t checkDriver();
cudaError_t checkDevice(int device);

}  // namespace cleave::shims
