#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

#include "base/cuda_version.h"
#include "libtorch/rank/collectives/nccl/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <stdexcept>

namespace cleave::torch_rank {
namespace {

std::string whyNoGpu(cudaError_t status) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (std::string obstacle = driverObstacle(driver, runtime); !obstacle.empty()) return obstacle;
  return status == cudaSuccess ? "CUDA lists no device" : cudaGetErrorString(status);
}

/// The GPU of a local rank: the one with its number, or the only one. Slurm may show each task only its own GPU.
int deviceIndex(const NcclRequest& request) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0)
    throw std::runtime_error("No GPU for NCCL: " + whyNoGpu(status) + ". Use the backend gloo to run on CPUs.");
  if (request.localRank < count) return request.localRank;
  if (count == 1) return 0;
  throw std::runtime_error("Local rank " + std::to_string(request.localRank) + " has no GPU: CUDA lists " +
                           std::to_string(count) + " GPUs. Start fewer ranks, or use the backend gloo to run on CPUs.");
}

DeviceMemory memoryOf(int device) {
  using c10::CachingAllocator::StatType;
  constexpr auto kAll = static_cast<std::size_t>(StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  DeviceMemory memory;
  memory.requested = stats.requested_bytes[kAll].current;
  memory.peakRequested = stats.requested_bytes[kAll].peak;
  memory.allocated = stats.allocated_bytes[kAll].current;
  memory.peakAllocated = stats.allocated_bytes[kAll].peak;
  memory.reserved = stats.reserved_bytes[kAll].current;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    memory.deviceFree = static_cast<std::int64_t>(free);
    memory.deviceTotal = static_cast<std::int64_t>(total);
  }
  return memory;
}

/// Uses the allocator's log, which contains all threads. LibTorch's profiler hook covers only the thread that installed
/// it.
void traceAllocations(int device, AllocationTrace trace) {
  using c10::cuda::CUDACachingAllocator::TraceEntry;
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
      [device, trace = std::move(trace)](const TraceEntry& entry) {
        if (entry.device_ != device) return;
        const auto* memory = reinterpret_cast<const void*>(entry.addr_);
        const auto bytes = static_cast<std::int64_t>(entry.size_);
        if (entry.action_ == TraceEntry::ALLOC) trace(memory, bytes);
        if (entry.action_ == TraceEntry::FREE_COMPLETED) trace(memory, -bytes);
      });
}

/// By default cuDNN rounds float32 operands to TF32, and NVIDIA's images configure cuBLAS to do the same. cuDNN's
/// attention is disabled because it supports only some shapes: the split and the unsplit model could use different
/// kernels.
void useComparableKernels() {
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setSDPUseCuDNN(false);
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

void open(const NcclRequest& request, NcclRuntime& runtime) {
  const int device = deviceIndex(request);
  const auto index = static_cast<c10::DeviceIndex>(device);
  keepWatchdogFromKilling();
  c10::cuda::set_device(index);
  at::globalContext().lazyInitDevice(at::kCUDA);
  useComparableKernels();
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  runtime.queue.device = at::Device(at::kCUDA, index);
  runtime.queue.mark = []() -> std::unique_ptr<DeviceMark> { return std::make_unique<EventMark>(); };
  runtime.deviceName = std::string(properties.name) + " (cuda:" + std::to_string(device) + ")";
  runtime.precision = "IEEE float32 (TF32 off)";
  runtime.memory = [device] { return memoryOf(device); };
  runtime.resetPeak = [index] { c10::cuda::CUDACachingAllocator::resetPeakStats(index); };
  runtime.traceAllocations = [device](AllocationTrace trace) { traceAllocations(device, std::move(trace)); };
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
