#include "libtorch/rank/process/probe.h"

#include "libtorch/rank/collectives/nccl_loader.h"
#include "libtorch/rank/process/membership.h"

namespace cleave::torch_rank {
namespace {

protocol::GpuFound messageOf(const ProbedGpu& gpu, std::int32_t index) {
  constexpr int kMaskBits = 63;
  protocol::GpuFound message{.index = index,
                             .name = gpu.name,
                             .uuid = gpu.uuid,
                             .capability = gpu.capability,
                             .freeBytes = gpu.freeBytes,
                             .totalBytes = gpu.totalBytes,
                             .error = gpu.error};
  for (const int other : gpu.withoutAccess) {
    if (other >= 0 && other < kMaskBits) message.withoutAccess |= std::int64_t{1} << other;
  }
  return message;
}

}  // namespace

Result<protocol::RankResult> probeGpus(const std::string& ncclLibrary, const EventSink& sink) {
  const CallTime calls;
  return runWithHeartbeat(sink, calls, [&]() -> Result<protocol::RankResult> {
    CLEAVE_TRY(const ProbedCuda found, probeNccl(ncclLibrary));
    sink(protocol::CudaFound{found.driver, found.runtime, found.nccl, static_cast<std::int32_t>(found.gpus.size()),
                             found.error});
    for (std::size_t i = 0; i < found.gpus.size(); ++i) sink(messageOf(found.gpus[i], static_cast<std::int32_t>(i)));
    const protocol::RankResult result;
    sink(result);
    return result;
  });
}

}  // namespace cleave::torch_rank
