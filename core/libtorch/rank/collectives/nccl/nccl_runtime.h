#pragma once
/// The interface of libcleave_nccl.so: a rank's GPU, its process groups over NCCL, its memory. This header uses
/// LibTorch.
///
/// The library is the only part of Cleave that links CUDA. `cleave-rank` loads it for the backend nccl, before LibTorch
/// uses a device, and never unloads it. Both sides are built from the same sources and the same LibTorch, so the
/// interface may use C++ types. tests/support/simulated_gpu implements the same interface on CPUs.
#include "libtorch/rank/collectives/device_queue.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cleave::torch_rank {

struct NcclRequest {
  int rank = 0, localRank = 0, worldSize = 1;
  std::chrono::milliseconds callTimeout{600'000};
};

/// All values are bytes. The caching allocator rounds tensors of up to 1 MiB to multiples of 512 bytes, so a block may
/// be larger than its tensor.
struct DeviceMemory {
  std::int64_t requested = 0, peakRequested = 0;  ///< size of the tensors; peaks are since `resetPeak`
  std::int64_t allocated = 0, peakAllocated = 0;  ///< size of their blocks
  std::int64_t reserved = 0;                      ///< the allocator's segments, including free blocks
  std::int64_t deviceFree = 0, deviceTotal = 0;   ///< memory of the GPU, for all processes
};

struct NcclGroup {
  c10::intrusive_ptr<c10d::Backend> backend;  ///< `shutdown` after the last call, `abort` if a peer has exited
  std::function<void()> checkHealth;          ///< as in DeviceQueue
};

/// Called for each allocation (`bytes` > 0) and each release (`bytes` < 0), on the thread that calls the allocator.
/// Must not allocate on the device.
using AllocationTrace = std::function<void(const void* memory, std::int64_t bytes)>;

struct NcclRuntime {
  DeviceQueue queue;                                      ///< queue of the current stream
  std::string deviceName;                                 ///< "NVIDIA H200 (cuda:0)"
  std::string precision;                                  ///< precision of float32 products: "IEEE float32 (TF32 off)"
  std::function<DeviceMemory()> memory;                   ///< may be called from any thread
  std::function<void()> resetPeak;                        ///< sets both peaks to the current values
  std::function<void(AllocationTrace)> traceAllocations;  ///< starts the trace; once per process
  /// Connects to all peers on the rank's device, which may take forever if one has exited. Needs at least two ranks.
  /// May be called from any thread. Throws c10d's exceptions, or std::runtime_error if two ranks have the same GPU.
  std::function<NcclGroup(const c10::intrusive_ptr<c10d::Store>&, int rank, int size)> connect;
};

/// Opens the rank's GPU. On failure returns false and sets `error` to a sentence. Exported under kNcclOpenName.
using NcclOpen = bool (*)(const NcclRequest& request, NcclRuntime& runtime, std::string& error);
inline constexpr const char* kNcclOpenName = "cleaveNcclOpen";

/// One GPU. GPUs are in CUDA's order.
struct ProbedGpu {
  std::string name;            ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;            ///< "GPU-8932f937-..."
  int capability = 0;          ///< 10 × major + minor: 90
  std::int64_t freeBytes = 0;  ///< free memory after this process's CUDA context was created
  std::int64_t totalBytes = 0;
  std::string error;               ///< reason that no kernel ran correctly; empty if one did
  std::vector<int> withoutAccess;  ///< GPUs whose memory this one cannot read directly
};
/// CUDA's versions and GPUs in this process. Versions are in CUDA's format: 13000 is 13.0; 0 if unknown.
struct ProbedCuda {
  int driver = 0;     ///< newest CUDA version that the driver supports; 0: no driver
  int runtime = 0;    ///< version of the CUDA runtime in use
  int nccl = 0;       ///< 22809 is 2.28.9
  std::string error;  ///< reason that CUDA lists no GPU; empty if it listed `gpus`
  std::vector<ProbedGpu> gpus;
};
/// Runs a kernel on each GPU. Never throws. Exported under kNcclProbeName.
using NcclProbe = void (*)(ProbedCuda& found);
inline constexpr const char* kNcclProbeName = "cleaveNcclProbe";

}  // namespace cleave::torch_rank
