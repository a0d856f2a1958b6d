#pragma once
/// The interface of libcleave_nccl.so: a rank's GPU, its process groups over NCCL, its memory. LibTorch inside.
///
/// The library is the only part of Cleave that links CUDA. `cleave-rank` loads it for the backend nccl, before anything
/// asks LibTorch for a device, and never unloads it. Both sides are built from one tree and one LibTorch, so C++ types
/// may cross. tests/support/simulated_gpu implements the same interface on CPUs.
#include "libtorch/rank/device_queue.h"

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

/// Bytes. The caching allocator gives a tensor a block that may be larger than what the tensor needs: up to 1 MiB, in
/// steps of 512 bytes.
struct DeviceMemory {
  std::int64_t requested = 0, peakRequested = 0;  ///< what tensors need; the peak since `forgetPeak`
  std::int64_t allocated = 0, peakAllocated = 0;  ///< their blocks
  std::int64_t reserved = 0;                      ///< segments that the allocator holds, free blocks included
  std::int64_t deviceFree = 0, deviceTotal = 0;   ///< of the whole GPU, all processes
};

struct NcclGroup {
  c10::intrusive_ptr<c10d::Backend> backend;  ///< `shutdown` after the last call, `abort` when a peer is gone
  std::function<void()> checkHealth;          ///< see DeviceQueue
};

/// Called for each allocation (`bytes` > 0) and each release (`bytes` < 0), on the thread that makes it. Must not
/// allocate on the device.
using AllocationTrace = std::function<void(const void* memory, std::int64_t bytes)>;

struct NcclRuntime {
  DeviceQueue queue;                                      ///< of the current stream
  std::string deviceName;                                 ///< "NVIDIA H200 (cuda:0)"
  std::string precision;                                  ///< of float32 products: "IEEE float32 (TF32 off)"
  std::function<DeviceMemory()> memory;                   ///< from any thread
  std::function<void()> forgetPeak;                       ///< both peaks restart at what is allocated now
  std::function<void(AllocationTrace)> traceAllocations;  ///< from now on; once per process
  /// Connects to all peers on the rank's device before it returns, which may take for ever when one of them is gone;
  /// from any thread. Throws as c10d does, or std::runtime_error when two ranks have the same GPU. Not for one rank
  /// alone.
  std::function<NcclGroup(const c10::intrusive_ptr<c10d::Store>&, int rank, int size)> connect;
};

/// Takes the rank's GPU. On failure false, and a sentence in `error`. Exported under kNcclOpenName.
using NcclOpen = bool (*)(const NcclRequest& request, NcclRuntime& runtime, std::string& error);
inline constexpr const char* kNcclOpenName = "cleaveNcclOpen";

/// One GPU, in CUDA's order.
struct ProbedGpu {
  std::string name;            ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;            ///< "GPU-8932f937-..."
  int capability = 0;          ///< 10 × major + minor: 90
  std::int64_t freeBytes = 0;  ///< with this process's CUDA context already taken off
  std::int64_t totalBytes = 0;
  std::string error;               ///< why no kernel ran on it; empty: one ran, and its result was right
  std::vector<int> withoutAccess;  ///< GPUs whose memory this one cannot read directly
};
/// What CUDA offers this process. Versions as CUDA counts: 13000 is 13.0; 0: not known.
struct ProbedCuda {
  int driver = 0;     ///< newest CUDA version that the driver supports; 0: no driver
  int runtime = 0;    ///< of the CUDA runtime in use
  int nccl = 0;       ///< 22809 is 2.28.9
  std::string error;  ///< why CUDA lists no GPU; empty: it listed `gpus`
  std::vector<ProbedGpu> gpus;
};
/// Runs a kernel on each GPU. Never throws. Exported under kNcclProbeName.
using NcclProbe = void (*)(ProbedCuda& found);
inline constexpr const char* kNcclProbeName = "cleaveNcclProbe";

}  // namespace cleave::torch_rank
