#pragma once
/// What libcleave_nccl.so gives a rank: its GPU, a process group over NCCL, and how full the GPU is. LibTorch inside.
///
/// The library is the only part of Cleave that links CUDA. `cleave-rank` loads it for the backend nccl alone, before
/// anything else asks LibTorch for a device, and never unloads it. Both sides are built from the same tree and
/// LibTorch, so C++ types may cross.
#include "libtorch/rank/device_queue.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace cleave::torch_rank {

struct NcclRequest {
  int rank = 0, localRank = 0, worldSize = 1;
  std::chrono::milliseconds callTimeout{600'000};
};

/// Bytes: the caching allocator's view, and the whole device's.
struct DeviceMemory {
  std::int64_t allocated = 0, reserved = 0, peak = 0;
  std::int64_t deviceFree = 0, deviceTotal = 0;
};

struct NcclGroup {
  c10::intrusive_ptr<c10d::Backend> backend;
  std::function<void()> checkHealth;  ///< see DeviceQueue
};

struct NcclRuntime {
  DeviceQueue queue;                     ///< of the current stream
  std::string deviceName;                ///< "NVIDIA H200 (cuda:0)"
  std::function<DeviceMemory()> memory;  ///< from any thread
  std::function<void()> forgetPeak;      ///< the peak is what is allocated now
  /// Connects to all peers on the rank's device before it returns, which may take for ever when one of them is gone;
  /// from any thread. Throws as c10d does, or std::runtime_error when two ranks have the same GPU. Not for one rank
  /// alone.
  std::function<NcclGroup(const c10::intrusive_ptr<c10d::Store>&, int rank, int size)> connect;
};

/// Takes the rank's GPU. On failure false, and a sentence in `error`. Exported under kNcclOpenName.
using NcclOpen = bool (*)(const NcclRequest& request, NcclRuntime& runtime, std::string& error);
inline constexpr const char* kNcclOpenName = "cleaveNcclOpen";

}  // namespace cleave::torch_rank
