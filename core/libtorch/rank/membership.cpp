#include "libtorch/rank/membership.h"

#include "base/machine_memory.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/device_warm_up.h"
#include "libtorch/rank/nccl_loader.h"

#include <unistd.h>

#include <algorithm>

namespace cleave::torch_rank {

Result<std::optional<Gpu>> takeGpu(const RankRequest& request) {
  if (request.backend == "gloo") return std::nullopt;
  if (request.backend != "nccl")
    return fail(ErrorCode::BadUsage, "The backend must be gloo or nccl, not {}.", request.backend);
  Gpu gpu;
  // The first sum has the limit for connecting.
  const auto longest = std::max(request.collectiveTimeout, request.connectTimeout);
  CLEAVE_TRY(gpu.runtime, openNccl(request.ncclLibrary, {request.rank, request.localRank, request.worldSize, longest}));
  CLEAVE_TRY_VOID(bridge::translated([&]() -> Result<void> {
    warmUpLibraries(gpu.runtime.queue.device);
    return {};
  }));
  gpu.workspaces = gpu.runtime.memory().requested;
  gpu.runtime.forgetPeak();
  return gpu;
}

Result<std::unique_ptr<Collectives>> meetOthers(const RankRequest& request, const std::optional<Gpu>& gpu,
                                                std::vector<std::pair<std::string, std::string>> alike) {
  if (request.worldSize == 1) return makeSoloCollectives(gpu ? gpu->runtime.queue : DeviceQueue());
  GroupAddress group{request.rank,       request.worldSize, request.masterAddress,
                     request.masterPort, request.listenFd,  request.agentStore};
  group.connectTimeout = request.connectTimeout;
  group.callTimeout = request.collectiveTimeout;
  group.alike = std::move(alike);
  return gpu ? connectNccl(gpu->runtime, group) : connectGloo(group);
}

protocol::Hello helloOf(const RankRequest& request, const std::optional<Gpu>& gpu) {
  return {protocol::kProtocolVersion, request.rank, ::getpid(), gpu ? gpu->runtime.deviceName : "cpu",
          gpu ? gpu->runtime.precision : ""};
}

void fillDevice(protocol::MemorySample& sample, const std::optional<Gpu>& gpu, const AllocationCounter& allocations) {
  if (gpu) {
    const DeviceMemory memory = gpu->runtime.memory();
    sample.allocated = memory.requested - gpu->workspaces;
    sample.peak = memory.peakRequested - gpu->workspaces;
    sample.rounding = memory.allocated - memory.requested;
    sample.peakRounding = std::max<std::int64_t>(0, memory.peakAllocated - memory.peakRequested);
    sample.reserved = memory.reserved;
    sample.deviceTotal = memory.deviceTotal;
    sample.deviceFree = memory.deviceFree;
    sample.deviceUsed = memory.deviceTotal - memory.deviceFree;
    // What this process's allocator does not know of, contexts and NCCL's buffers (and other processes on the device),
    // and what cuBLAS took from it.
    sample.communication = std::max<std::int64_t>(0, sample.deviceUsed - memory.reserved) + gpu->workspaces;
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
