#define USE_C10D_NCCL
#include "libtorch/rank/collectives/nccl/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace cleave::torch_rank {
namespace {

/// Added to c10d's limit, so that Cleave's limit is reached first. Cleave's message names the collective.
constexpr std::chrono::milliseconds kWatchdogGrace{30'000};

/// Two NCCL ranks on one GPU hang, or fail with a message that names neither rank, so this check is made before NCCL
/// starts. All ranks read all names before one fails, because rank 0's process may serve the store.
void checkOwnGpu(c10d::Store& store, const NcclRequest& request, int device) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string mine = std::string(host) + "/" + uuidOf(device);
  store.set("cleave/gpu/" + std::to_string(request.rank), mine);
  int same = request.rank;
  for (int other = 0; other < request.worldSize; ++other) {
    if (store.get_to_str("cleave/gpu/" + std::to_string(other)) == mine && other != request.rank) same = other;
  }
  store.set("cleave/gpu-read/" + std::to_string(request.rank), "");
  if (request.rank == 0) {
    for (int other = 1; other < request.worldSize; ++other) store.get("cleave/gpu-read/" + std::to_string(other));
  }
  if (same == request.rank) return;
  throw std::runtime_error("Ranks " + std::to_string(std::min(same, request.rank)) + " and " +
                           std::to_string(std::max(same, request.rank)) +
                           " have the same GPU, but NCCL needs one GPU per rank. Start fewer ranks, or use the "
                           "backend gloo to run on CPUs.");
}

std::string_view ncclErrorText(c10d::ErrorType error) {
  switch (error) {
    case c10d::ErrorType::SUCCESS: return "";
    case c10d::ErrorType::TIMEOUT: return "a collective exceeded its time limit";
    case c10d::ErrorType::REMOTE_ERROR: return "another rank reported an error";
    case c10d::ErrorType::COMM_ERROR: return "the connection to another rank broke";
  }
  return "an unknown error";
}

}  // namespace

void keepWatchdogFromKilling() {
  constexpr const char* kCleanUpOnly = "2";
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", kCleanUpOnly, /*overwrite=*/1);
  ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "1000", /*overwrite=*/1);  // default: waits 60 s for an unused dump
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/1);  // "1" ends the process if the watchdog itself hangs
}

std::string uuidOf(int device) {
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string uuid = "GPU";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    uuid += kDigits[(properties.uuid.bytes[i] >> 4) & 15];
    uuid += kDigits[properties.uuid.bytes[i] & 15];
  }
  return uuid;
}

NcclGroup connectGroup(const NcclRequest& request, int device, const c10::intrusive_ptr<c10d::Store>& store) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  const c10::cuda::CUDAGuard guard(index);
  checkOwnGpu(*store, request, device);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.callTimeout + kWatchdogGrace;
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, request.rank, request.worldSize, options);
  // Binds the group to its device and connects it now. Otherwise the first collective would connect it, within its own
  // limit and time.
  group->setBoundDeviceId(at::Device(at::kCUDA, index));
  group->eagerConnectSingleDevice(at::Device(at::kCUDA, index));
  return {group, [backend = group] {
            const std::string_view wrong = ncclErrorText(backend->getError());
            if (!wrong.empty()) throw std::runtime_error("NCCL: " + std::string(wrong) + ".");
          }};
}

}  // namespace cleave::torch_rank
