#pragma once
/// The tasks of every rank, for runs and calibrations: opens its device, connects to the others, sends heartbeats, and
/// reports its failure. This header uses LibTorch.
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/collectives/heartbeat.h"
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "libtorch/rank/process/event_sink.h"
#include "libtorch/rank/process/rank_request.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

/// The rank's GPU and the memory that its libraries keep there.
struct Gpu {
  NcclRuntime runtime;
  std::int64_t workspaces = 0;  ///< bytes that cuBLAS allocated before the program started; count as context

  /// Bytes of the program's tensors: the current value, and the peak since NcclRuntime::resetPeak.
  std::int64_t programBytes() const { return runtime.memory().requested - workspaces; }
  std::int64_t peakBytes() const { return runtime.memory().peakRequested - workspaces; }
  /// Bytes that the allocator's rounding adds to the peak.
  std::int64_t peakRounding() const {
    const DeviceMemory memory = runtime.memory();
    return std::max<std::int64_t>(0, memory.peakAllocated - memory.peakRequested);
  }
};

/// Opens the rank's GPU and warms up its libraries. Returns nullopt for the backend gloo (CPUs), BadUsage for an
/// unknown backend, and Environment as openNccl does.
Result<std::optional<Gpu>> openGpu(const RankRequest& request);

/// Connects to all peers, if there are any. `alike` as in GroupAddress.
Result<std::unique_ptr<Collectives>> connectPeers(const RankRequest& request, const std::optional<Gpu>& gpu,
                                                  std::vector<std::pair<std::string, std::string>> alike);

/// Sets the memory of the allocator and the device; on CPUs, those of the process and the machine. The sample already
/// contains `rss`. May be called from any thread.
void fillDevice(protocol::MemorySample& sample, const std::optional<Gpu>& gpu, const AllocationCounter& allocations);

/// The first message of a rank.
protocol::Hello helloOf(const RankRequest& request, const std::optional<Gpu>& gpu);

/// Calls `body` and returns its result; translates exceptions. Sends heartbeats to the sink during the call. If it
/// fails, the last message is the error.
Result<protocol::RankResult> runWithHeartbeat(const EventSink& sink, const CallTime& calls,
                                              const std::function<Result<protocol::RankResult>()>& body);

}  // namespace cleave::torch_rank
