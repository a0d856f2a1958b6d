#include "pipeline/pipeline.h"

#include "base/quantities.h"
#include "run/machine_memory.h"

namespace cleave::pipeline {
namespace {

/// What a rank on CPUs holds of its own besides the program's tensors: LibTorch's data, its share of the code, threads and
/// Gloo's buffers. Its PSS was measured as 66 MiB with 8 ranks and as 84 MiB with 2, which
/// share the code among fewer.
constexpr std::int64_t kProcessBytes = 80 << 20;

void compareWithMachine(MemoryCheck& check, const std::string& need) {
  if (const std::int64_t available = run::machineMemory().available; available > 0) check.available = available;
  check.text = check.available ? fmt::format("{}, and {} are free here.", need, bytesText(*check.available))
                               : fmt::format("{}; how much is free here is not known.", need);
}

std::string ranksText(int ranks) { return ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks); }

}  // namespace

MemoryCheck checkMemory(const plan::Plan& plan, run::Backend backend) {
  MemoryCheck check;
  const std::int64_t rank = plan.memory.total();
  if (backend == run::Backend::Nccl) {
    check.needed = rank;
    check.available = run::leastFreeGpuMemory(plan.ranks);
    const std::string need = fmt::format("A rank is predicted to hold {} on its GPU", bytesText(rank));
    check.text = !check.available ? fmt::format("{}; how much is free there is not known.", need)
                                  : fmt::format("{}, and {} are free on {}.", need, bytesText(*check.available),
                                                plan.ranks == 1 ? "it" : "the fullest of them");
    return check;
  }
  check.needed = plan.ranks * (rank + kProcessBytes);
  compareWithMachine(check, fmt::format("{} are predicted to hold {} of memory{}", ranksText(plan.ranks), bytesText(check.needed),
                                        plan.ranks == 1 ? "" : fmt::format(" together ({} each)", bytesText(rank + kProcessBytes))));
  return check;
}

MemoryCheck checkUnsplitMemory(const plan::Plan& plan) {
  MemoryCheck check;
  check.needed = plan::unsplitMemory(plan).total() + kProcessBytes;
  compareWithMachine(check, fmt::format("The unsplit run that the ranks are compared with is predicted to hold {} of memory", bytesText(check.needed)));
  return check;
}

}  // namespace cleave::pipeline
