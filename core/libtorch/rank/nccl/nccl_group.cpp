#define USE_C10D_NCCL
#include "libtorch/rank/nccl/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace cleave::torch_rank {
namespace {

/// Our own limit comes first and names the collective; see Collectives::finish.
constexpr std::chrono::milliseconds kWatchdogGrace{30'000};

/// Two NCCL ranks on one GPU hang, or fail with a message that names neither: found before NCCL starts. All ranks read
/// all names before any of them fails, because rank 0's process may serve the store.
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
                           " have the same GPU, and NCCL needs one for each rank. Start fewer ranks, or use the "
                           "backend gloo to run on CPUs.");
}

std::string_view whatWentWrong(c10d::ErrorType error) {
  switch (error) {
    case c10d::ErrorType::SUCCESS: return "";
    case c10d::ErrorType::TIMEOUT: return "a collective was not answered in time";
    case c10d::ErrorType::REMOTE_ERROR: return "another rank reported an error";
    case c10d::ErrorType::COMM_ERROR: return "the connection to another rank broke";
  }
  return "an unknown error";
}

}  // namespace

void keepWatchdogFromKilling() {
  constexpr const char* kCleanUpOnly = "2";
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", kCleanUpOnly, /*overwrite=*/1);
  ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "1000", /*overwrite=*/1);  // a dump of which nobody asked, for 60 s
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/1);  // ends the process when the watchdog itself hangs
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
  // Bound to its device, and connected now: not inside the first collective, whose deadline and time it would be.
  group->setBoundDeviceId(at::Device(at::kCUDA, index));
  group->eagerConnectSingleDevice(at::Device(at::kCUDA, index));
  return {group, [backend = group] {
            const std::string_view wrong = whatWentWrong(backend->getError());
            if (!wrong.empty()) throw std::runtime_error("NCCL: " + std::string(wrong) + ".");
          }};
}

}  // namespace cleave::torch_rank
