#include "pipeline/memory/memory_check.h"

#include "base/machine_memory.h"
#include "base/quantities.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/memory/rank_memory.h"

namespace cleave::pipeline {
namespace {

void compareWithMachine(MemoryCheck& check, const std::string& need) {
  if (const std::int64_t available = machineMemory().available; available > 0) check.available = available;
  check.text = check.available ? fmt::format("{}, and this machine has {} free.", need, bytesText(*check.available))
                               : fmt::format("{}; the free memory of this machine is unknown.", need);
}

std::string ranksText(int ranks) { return ranks == 1 ? "1 rank needs" : fmt::format("{} ranks need", ranks); }

/// A run reports only the program's memory; its process needs more.
std::string partsText(std::int64_t program, int processes) {
  if (processes == 1)
    return fmt::format(" ({} for the program, {} for LibTorch)", bytesText(program),
                       bytesText(kOwnBytesOnCpu + kSharedBytesOnCpu));
  return fmt::format(" (per rank {} for the program and {} for LibTorch, plus {} of shared LibTorch code)",
                     bytesText(program), bytesText(kOwnBytesOnCpu), bytesText(kSharedBytesOnCpu));
}

}  // namespace

MemoryCheck checkMemory(const plan::Plan& plan, launch::Backend backend, const Workload& workload) {
  MemoryCheck check;
  const int ranks = plan.spec.ranks * workload.replicas;
  const std::int64_t rank = predictedMemory(plan, workload);
  if (backend == launch::Backend::Nccl) {
    check.needed = gpuBytes(plan, workload);
    if (const auto probe = launch::lastGpuProbe()) check.available = launch::leastFreeGpuMemory(*probe, ranks);
    const std::string need = fmt::format(
        "Each rank needs {} on its GPU ({} for the program, {} for CUDA's libraries{})", bytesText(check.needed),
        bytesText(rank), bytesText(check.needed - rank), ranks > 1 ? " and NCCL" : "");
    check.text = !check.available ? fmt::format("{}; the free memory there is unknown.", need)
                                  : fmt::format("{}, and {} is free on {}.", need, bytesText(*check.available),
                                                ranks == 1 ? "it" : "the fullest GPU");
    return check;
  }
  check.needed = ranks * (rank + kOwnBytesOnCpu) + kSharedBytesOnCpu;
  compareWithMachine(check, fmt::format("{} a predicted {} of memory{}", ranksText(ranks), bytesText(check.needed),
                                        partsText(rank, ranks)));
  return check;
}

MemoryCheck checkUnsplitMemory(const plan::Plan& plan, const Workload& workload) {
  MemoryCheck check;
  const std::int64_t program = unsplitBytes(plan, workload);
  check.needed = program + kOwnBytesOnCpu + kSharedBytesOnCpu;
  compareWithMachine(check, fmt::format("The unsplit run for the comparison needs a predicted {} of memory{}",
                                        bytesText(check.needed), partsText(program, 1)));
  return check;
}

}  // namespace cleave::pipeline
