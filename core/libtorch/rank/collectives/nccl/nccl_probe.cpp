#include "libtorch/rank/collectives/nccl/nccl_group.h"
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <nccl.h>

namespace cleave::torch_rank {
namespace {

constexpr std::int64_t kSide = 32;

/// Runs an element-wise kernel, a product in cuBLAS and a copy to the host. Empty if the result is right.
std::string whyNoKernel(int device) {
  try {
    const at::Device gpu(at::kCUDA, static_cast<c10::DeviceIndex>(device));
    const c10::cuda::CUDAGuard guard(gpu);
    const at::Tensor twos = at::ones({kSide, kSide}, gpu) + 1;
    const float sum = twos.mm(twos).sum().item<float>();
    const auto right = static_cast<float>(4 * kSide * kSide * kSide);
    if (sum == right) return {};
    return "a matrix product gave " + std::to_string(sum) + " instead of " + std::to_string(right);
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  } catch (const std::exception& e) {
    return e.what();
  }
}

ProbedGpu probeGpu(int device, int count) {
  ProbedGpu gpu;
  cudaDeviceProp properties;
  if (const cudaError_t status = cudaGetDeviceProperties(&properties, device); status != cudaSuccess) {
    gpu.error = cudaGetErrorString(status);
    return gpu;
  }
  gpu.name = properties.name;
  gpu.uuid = uuidOf(device);
  gpu.capability = 10 * properties.major + properties.minor;
  gpu.totalBytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  gpu.error = whyNoKernel(device);
  for (int other = 0; other < count; ++other) {
    int canAccess = 1;
    if (other != device && cudaDeviceCanAccessPeer(&canAccess, device, other) == cudaSuccess && canAccess == 0)
      gpu.withoutAccess.push_back(other);
  }
  if (!gpu.error.empty()) return gpu;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    gpu.freeBytes = static_cast<std::int64_t>(free);
    gpu.totalBytes = static_cast<std::int64_t>(total);
  }
  return gpu;
}

}  // namespace
}  // namespace cleave::torch_rank

extern "C" __attribute__((visibility("default"))) void cleaveNcclProbe(cleave::torch_rank::ProbedCuda& found) {
  cudaDriverGetVersion(&found.driver);
  cudaRuntimeGetVersion(&found.runtime);
  ncclGetVersion(&found.nccl);
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    found.error = cudaGetErrorString(status);
    return;
  }
  try {
    for (int device = 0; device < count; ++device) found.gpus.push_back(cleave::torch_rank::probeGpu(device, count));
  } catch (const std::exception& e) {
    found.error = e.what();
  }
}
