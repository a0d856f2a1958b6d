#include "libtorch/rank/membership.h"

#include "base/machine_memory.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/nccl_loader.h"

#include <algorithm>

namespace cleave::torch_rank {

Result<std::optional<NcclRuntime>> takeRuntime(const RankRequest& request) {
  if (request.backend == "gloo") return std::nullopt;
  if (request.backend != "nccl")
    return fail(ErrorCode::BadUsage, "The backend must be gloo or nccl, not {}.", request.backend);
  return openNccl(request.ncclLibrary, {request.rank, request.localRank, request.worldSize});
}

Result<std::unique_ptr<Collectives>> meetOthers(const RankRequest& request, const std::optional<NcclRuntime>& runtime,
                                                std::vector<std::pair<std::string, std::string>> alike) {
  if (request.worldSize == 1) return makeSoloCollectives(runtime ? runtime->queue : DeviceQueue());
  GroupAddress group{request.rank,       request.worldSize, request.masterAddress,
                     request.masterPort, request.listenFd,  request.agentStore};
  group.connectTimeout = request.connectTimeout;
  group.alike = std::move(alike);
  return runtime ? connectNccl(*runtime, group) : connectGloo(group);
}

void fillDevice(protocol::MemorySample& sample, const std::optional<NcclRuntime>& runtime,
                const AllocationCounter& allocations) {
  if (runtime) {
    const DeviceMemory memory = runtime->memory();
    sample.allocated = memory.allocated;
    sample.reserved = memory.reserved;
    sample.peak = memory.peak;
    sample.deviceTotal = memory.deviceTotal;
    sample.deviceFree = memory.deviceFree;
    sample.deviceUsed = memory.deviceTotal - memory.deviceFree;
    // What this process's allocator does not know of: contexts, NCCL's buffers (and other processes on the device).
    sample.communication = std::max<std::int64_t>(0, sample.deviceUsed - memory.reserved);
    return;
  }
  static const std::int64_t machine = machineMemory().total;
  sample.allocated = sample.reserved = allocations.allocated();
  sample.peak = allocations.peak();
  sample.deviceUsed = sample.rss;
  sample.deviceTotal = machine;
  sample.deviceFree = std::max<std::int64_t>(0, machine - sample.rss);
}

Result<protocol::RankResult> runAlive(const EventSink& sink, const CallTime& calls,
                                      const std::function<Result<protocol::RankResult>()>& body) {
  auto result = [&] {
    const Pulse pulse(sink, calls);
    return bridge::translated(body);
  }();
  if (result) return result;
  sink(protocol::PhaseChange{protocol::Phase::Failed, 0, 0});
  const Error& error = result.error();
  sink(protocol::RankError{error.message, error.code == ErrorCode::RankFailed, error.code});
  return result;
}

}  // namespace cleave::torch_rank
