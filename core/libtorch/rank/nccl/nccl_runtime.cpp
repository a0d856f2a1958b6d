#define USE_C10D_NCCL
#include "libtorch/rank/nccl/nccl_runtime.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace cleave::torch_rank {
namespace {

/// Our own limit comes first and names the collective; see Collectives::finish.
constexpr std::chrono::milliseconds kWatchdogGrace{30'000};

/// The GPU of a local rank: by its number, or the only one there is (Slurm may show each task just its own).
int deviceIndex(const NcclRequest& request) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    throw std::runtime_error(std::string("No GPU for NCCL: ") +
                             (status == cudaSuccess ? "CUDA sees none" : cudaGetErrorString(status)) +
                             ". Use the backend gloo to run on CPUs.");
  }
  if (request.localRank < count) return request.localRank;
  if (count == 1) return 0;
  throw std::runtime_error("Local rank " + std::to_string(request.localRank) + " has no GPU: CUDA sees " +
                           std::to_string(count) + ". Start fewer ranks, or use the backend gloo to run on CPUs.");
}

/// Names the GPU the same way in all processes of all machines.
std::string identityOf(int device) {
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  std::string identity = std::string(host) + "/";
  constexpr char kDigits[] = "0123456789abcdef";
  for (char byte : properties.uuid.bytes) {
    identity += kDigits[(byte >> 4) & 15];
    identity += kDigits[byte & 15];
  }
  return identity;
}

/// Two NCCL ranks on one GPU hang or fail in ways nobody understands: found out before NCCL starts.
void checkOwnGpu(c10d::Store& store, const NcclRequest& request, int device) {
  const std::string mine = identityOf(device);
  store.set("cleave/gpu/" + std::to_string(request.rank), mine);
  for (int other = 0; other < request.worldSize; ++other) {
    if (other != request.rank && store.get_to_str("cleave/gpu/" + std::to_string(other)) == mine) {
      throw std::runtime_error("Ranks " + std::to_string(std::min(other, request.rank)) + " and " +
                               std::to_string(std::max(other, request.rank)) +
                               " have the same GPU, and NCCL needs one for each rank. Start fewer ranks, or use the "
                               "backend gloo to run on CPUs.");
    }
  }
}

DeviceMemory memoryOf(int device) {
  using c10::CachingAllocator::StatType;
  constexpr auto kAll = static_cast<std::size_t>(StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  DeviceMemory memory;
  memory.allocated = stats.allocated_bytes[kAll].current;
  memory.reserved = stats.reserved_bytes[kAll].current;
  memory.peak = stats.allocated_bytes[kAll].peak;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    memory.deviceFree = static_cast<std::int64_t>(free);
    memory.deviceTotal = static_cast<std::int64_t>(total);
  }
  return memory;
}

class EventMark final : public DeviceMark {
 public:
  EventMark() : m_event(cudaEventDefault) { m_event.record(); }
  bool isReached() override { return m_event.query(); }
  std::chrono::nanoseconds since(DeviceMark& earlier) override {
    const double milliseconds = dynamic_cast<EventMark&>(earlier).m_event.elapsed_time(m_event);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6));
  }

 private:
  at::cuda::CUDAEvent m_event;
};

/// c10d's watchdog is the backstop for a host that waits for the device inside an operator: it breaks the communicator
/// off, so that the wait ends. It must not end the process, which has its error still to report.
void keepWatchdogFromKilling() {
  constexpr const char* kCleanUpOnly = "2";
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", kCleanUpOnly, /*overwrite=*/1);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/1);  // ends the process when the watchdog itself hangs
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

NcclGroup connectGroup(NcclRequest request, int device, const c10::intrusive_ptr<c10d::Store>& store) {
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

void open(const NcclRequest& request, NcclRuntime& runtime) {
  const int device = deviceIndex(request);
  keepWatchdogFromKilling();
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  at::globalContext().lazyInitDevice(at::kCUDA);
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  runtime.queue.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  runtime.queue.mark = []() -> std::unique_ptr<DeviceMark> { return std::make_unique<EventMark>(); };
  runtime.deviceName = std::string(properties.name) + " (cuda:" + std::to_string(device) + ")";
  runtime.memory = [device] { return memoryOf(device); };
  runtime.forgetPeak = [device] {
    c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(device));
  };
  runtime.connect = [request, device](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
    NcclRequest group = request;
    group.rank = rank;
    group.worldSize = size;
    return connectGroup(group, device, store);
  };
}

}  // namespace
}  // namespace cleave::torch_rank

extern "C" __attribute__((visibility("default"))) bool cleaveNcclOpen(const cleave::torch_rank::NcclRequest& request,
                                                                      cleave::torch_rank::NcclRuntime& runtime,
                                                                      std::string& error) {
  try {
    cleave::torch_rank::open(request, runtime);
    return true;
  } catch (const c10::Error& e) {
    error = e.what_without_backtrace();
  } catch (const std::exception& e) {
    error = e.what();
  }
  return false;
}
