#include "pipeline/run/unsplit_place.h"

#include "base/quantities.h"
#include "pipeline/memory/rank_memory.h"

namespace cleave::pipeline {

UnsplitPlace unsplitPlace(const plan::Plan& split, const Workload& workload, launch::Backend ofRanks) {
  if (ofRanks != launch::Backend::Nccl) return {};
  UnsplitPlace onCpus{.text = "an unsplit run on CPUs"};
  const auto probe = launch::lastGpuProbe();
  if (!probe || probe->gpus.empty() || !probe->gpus.front().error.empty()) return onCpus;
  const protocol::GpuFound& gpu = probe->gpus.front();
  const std::int64_t needed = unsplitBytes(split, workload) + kAloneOnGpuBytes;
  if (gpu.freeBytes < needed) {
    onCpus.note = fmt::format("The unsplit run used CPUs: it needs {} on a GPU, and GPU 0 has {} free.",
                              bytesText(needed), bytesText(gpu.freeBytes));
    return onCpus;
  }
  return {.backend = launch::Backend::Nccl, .text = fmt::format("an unsplit run on GPU 0 ({})", gpu.name)};
}

}  // namespace cleave::pipeline
