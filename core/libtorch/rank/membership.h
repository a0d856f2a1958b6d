#pragma once
/// What every rank does whatever it then computes: it takes its device, meets the others, gives signs of life, and
/// tells of its failure. LibTorch inside.
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/memory_probe.h"
#include "libtorch/rank/nccl/nccl_runtime.h"
#include "libtorch/rank/pulse.h"
#include "libtorch/rank/rank.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

/// The rank's GPU and what its libraries hold there for good.
struct Gpu {
  NcclRuntime runtime;
  std::int64_t workspaces = 0;  ///< bytes that cuBLAS took from the allocator before the program: part of the context

  /// Bytes that the program's tensors need, now and at most since NcclRuntime::forgetPeak.
  std::int64_t programBytes() const { return runtime.memory().requested - workspaces; }
  std::int64_t peakBytes() const { return runtime.memory().peakRequested - workspaces; }
  /// Bytes that the allocator's blocks add to that peak.
  std::int64_t peakRounding() const {
    const DeviceMemory memory = runtime.memory();
    return std::max<std::int64_t>(0, memory.peakAllocated - memory.peakRequested);
  }
};

/// Opens the rank's GPU and brings its libraries to their working state; nullopt: the backend is gloo, on CPUs.
/// BadUsage for any other backend, Environment as openNccl.
Result<std::optional<Gpu>> takeGpu(const RankRequest& request);

/// Connects to all peers, or to nobody where there is one rank. `alike`: see GroupAddress.
Result<std::unique_ptr<Collectives>> meetOthers(const RankRequest& request, const std::optional<Gpu>& gpu,
                                                std::vector<std::pair<std::string, std::string>> alike);

/// What the rank's device holds: the allocator's figures and the whole device's, on CPUs the process and the machine,
/// of which the sample knows `rss` already. Any thread.
void fillDevice(protocol::MemorySample& sample, const std::optional<Gpu>& gpu, const AllocationCounter& allocations);

/// The first message of a rank.
protocol::Hello helloOf(const RankRequest& request, const std::optional<Gpu>& gpu);

/// What `body` answers, or throws; meanwhile the sink hears the rank's pulse, and of a failure last of all.
Result<protocol::RankResult> runAlive(const EventSink& sink, const CallTime& calls,
                                      const std::function<Result<protocol::RankResult>()>& body);

}  // namespace cleave::torch_rank
