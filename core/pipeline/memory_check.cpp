#include "pipeline/rank_memory.h"
#include "pipeline/run.h"

#include "base/machine_memory.h"
#include "base/quantities.h"
#include "plan/shares.h"

namespace cleave::pipeline {
namespace {

/// What a rank takes on CPUs besides its program. Of its own: LibTorch's data, scratch of matrix products, threads,
/// Gloo's buffers; measured as 61 MiB under a program of 1 MiB, 98 MiB under 181 MiB and 120 MiB under 808 MiB. Once
/// for all: the code.
constexpr std::int64_t kOwnBytes = 120 << 20, kSharedBytes = 72 << 20;

void compareWithMachine(MemoryCheck& check, const std::string& need) {
  if (const std::int64_t available = machineMemory().available; available > 0) check.available = available;
  check.text = check.available ? fmt::format("{}, and {} are free here.", need, bytesText(*check.available))
                               : fmt::format("{}; how much is free here is not known.", need);
}

std::string ranksText(int ranks) { return ranks == 1 ? "1 rank is" : fmt::format("{} ranks are", ranks); }

/// The program's figure is the one a run reports; a process takes more.
std::string partsText(std::int64_t program, int processes) {
  if (processes == 1)
    return fmt::format(" ({} of the program, {} of LibTorch)", bytesText(program), bytesText(kOwnBytes + kSharedBytes));
  return fmt::format(" together (each {} of the program and {} of LibTorch, and {} of its code that they share)",
                     bytesText(program), bytesText(kOwnBytes), bytesText(kSharedBytes));
}

}  // namespace

std::int64_t roomForProgram(std::int64_t available, int ranks) {
  return std::max<std::int64_t>(0, (available - kSharedBytes) / ranks - kOwnBytes);
}

std::int64_t gpuBytes(const plan::Plan& plan, const Workload& workload) {
  const bool hasPeers = plan.ranks * workload.replicas > 1;
  return predictedMemory(plan, workload) + (hasPeers ? kWithPeersOnGpuBytes : kAloneOnGpuBytes);
}

MemoryCheck checkMemory(const plan::Plan& plan, launch::Backend backend, const Workload& workload) {
  MemoryCheck check;
  const int ranks = plan.ranks * workload.replicas;
  const std::int64_t rank = predictedMemory(plan, workload);
  if (backend == launch::Backend::Nccl) {
    check.needed = gpuBytes(plan, workload);
    if (const auto probe = launch::lastGpuProbe()) check.available = launch::leastFreeGpuMemory(*probe, ranks);
    const std::string need = fmt::format(
        "Each rank needs {} on its GPU ({} for the program, {} for CUDA's libraries{})", bytesText(check.needed),
        bytesText(rank), bytesText(check.needed - rank), ranks > 1 ? " and NCCL" : "");
    check.text = !check.available ? fmt::format("{}; the free memory there is not known.", need)
                                  : fmt::format("{}; {} are free on {}.", need, bytesText(*check.available),
                                                ranks == 1 ? "it" : "the fullest GPU");
    return check;
  }
  check.needed = ranks * (rank + kOwnBytes) + kSharedBytes;
  compareWithMachine(check, fmt::format("{} predicted to hold {} of memory{}", ranksText(ranks),
                                        bytesText(check.needed), partsText(rank, ranks)));
  return check;
}

std::int64_t unsplitBytes(const plan::Plan& plan, const Workload& workload) {
  if (workload.isTraining) return plan::unsplitTrainingBytes(plan, workload.replicas);
  const plan::MemoryPrediction ofReplica = plan::unsplitMemory(plan);
  if (workload.step) return memoryOfBoth(ofReplica, plan::unsplitMemory(*workload.step));
  return ofReplica.total() + (workload.replicas - 1) * (ofReplica.inputs + ofReplica.peakActivations);
}

MemoryCheck checkUnsplitMemory(const plan::Plan& plan, const Workload& workload) {
  MemoryCheck check;
  const std::int64_t program = unsplitBytes(plan, workload);
  check.needed = program + kOwnBytes + kSharedBytes;
  compareWithMachine(check,
                     fmt::format("The unsplit run that the ranks are compared with is predicted to hold {} of memory{}",
                                 bytesText(check.needed), partsText(program, 1)));
  return check;
}

}  // namespace cleave::pipeline
