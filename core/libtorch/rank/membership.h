#pragma once
/// What every rank does whatever it then computes: it takes its device, meets the others, gives signs of life, and
/// tells of its failure. LibTorch inside.
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/memory_probe.h"
#include "libtorch/rank/nccl/nccl_runtime.h"
#include "libtorch/rank/pulse.h"
#include "libtorch/rank/rank.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

/// The rank's GPU; nullopt: the backend is gloo, on CPUs. BadUsage for any other backend, Environment as openNccl.
Result<std::optional<NcclRuntime>> takeRuntime(const RankRequest& request);

/// Connects to all peers, or to nobody where there is one rank. `alike`: see GroupAddress.
Result<std::unique_ptr<Collectives>> meetOthers(const RankRequest& request, const std::optional<NcclRuntime>& runtime,
                                                std::vector<std::pair<std::string, std::string>> alike);

/// What the rank's device holds: the allocator's figures and the whole device's, on CPUs the process and the machine,
/// of which the sample knows `rss` already. Any thread.
void fillDevice(protocol::MemorySample& sample, const std::optional<NcclRuntime>& runtime,
                const AllocationCounter& allocations);

/// What `body` answers, or throws; meanwhile the sink hears the rank's pulse, and of a failure last of all.
Result<protocol::RankResult> runAlive(const EventSink& sink, const CallTime& calls,
                                      const std::function<Result<protocol::RankResult>()>& body);

}  // namespace cleave::torch_rank
