#include "libtorch/rank/process/membership.h"

#include "base/machine_memory.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/collectives/nccl_loader.h"
#include "libtorch/rank/process/device_warm_up.h"

#include <unistd.h>

#include <algorithm>

namespace cleave::torch_rank {

Result<std::optional<Gpu>> openGpu(const RankRequest& request) {
  if (request.backend == "gloo") return std::nullopt;
  if (request.backend != "nccl")
    return fail(ErrorCode::BadUsage, "The backend is {}. Use gloo or nccl.", request.backend);
  Gpu gpu;
  // The first sum has the time limit of connecting.
  const auto longest = std::max(request.collectiveTimeout, request.connectTimeout);
  CLEAVE_TRY(gpu.runtime, openNccl(request.ncclLibrary, {request.rank, request.localRank, request.worldSize, longest}));
  CLEAVE_TRY_VOID(bridge::translated([&]() -> Result<void> {
    warmUpLibraries(gpu.runtime.queue.device);
    return {};
  }));
  gpu.workspaces = gpu.runtime.memory().requested;
  gpu.runtime.resetPeak();
  return gpu;
}

Result<std::unique_ptr<Collectives>> connectPeers(const RankRequest& request, const std::optional<Gpu>& gpu,
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
    // Memory outside this process's allocator (contexts, NCCL's buffers, other processes on the device), and the
    // workspaces of cuBLAS.
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

Result<protocol::RankResult> runWithHeartbeat(const EventSink& sink, const CallTime& calls,
                                              const std::function<Result<protocol::RankResult>()>& body) {
  auto result = [&] {
    const HeartbeatSender heartbeats(sink, calls);
    return bridge::translated(body);
  }();
  if (result) return result;
  sink(protocol::PhaseChange{protocol::Phase::Failed, 0, 0});
  const Error& error = result.error();
  sink(protocol::RankError{error.message, error.code == ErrorCode::RankFailed, error.code});
  return result;
}

}  // namespace cleave::torch_rank
