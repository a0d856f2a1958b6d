#include "launch/gpus.h"

#include "base/cuda_version.h"
#include "base/quantities.h"
#include "protocol/rank_side.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace cleave::launch {
namespace {

namespace fs = std::filesystem;

bool hasEntry(const fs::path& folder, bool (*counts)(const std::string& name)) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (counts(entry->path().filename().string())) return true;
  }
  return false;
}

/// Matches nvidia0, nvidia1, ...; nvidiactl exists without a GPU, too.
bool isGpuDeviceFile(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  return name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

/// "GPU 1 (Tesla P100, sm_60)"
std::string nameOf(const protocol::GpuFound& gpu) {
  return fmt::format("GPU {} ({}, sm_{})", gpu.index, gpu.name, gpu.capability);
}

std::string visibilityText() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible) : std::string();
}

std::string countedGpus(std::size_t gpus) {
  return gpus == 0 ? "no GPU" : counted(static_cast<std::int64_t>(gpus), "GPU");
}

/// Hint if enough other GPUs are usable: " Set CUDA_VISIBLE_DEVICES=1,2."
std::string otherGpusText(const GpuProbe& probe, int ranks) {
  if (probe.usable() < ranks) return {};
  std::vector<std::string> others;
  for (const protocol::GpuFound& gpu : probe.gpus) {
    if (gpu.error.empty() && std::ssize(others) < ranks) others.push_back(gpu.uuid);
  }
  return fmt::format(" (CUDA_VISIBLE_DEVICES={} excludes it)", fmt::join(others, ","));
}

std::string whyFewerThan(const GpuProbe& probe, int ranks) {
  std::string text = fmt::format("NCCL needs one GPU per rank, but CUDA lists {} for {}{}",
                                 countedGpus(probe.gpus.size()), counted(ranks, "rank"), visibilityText());
  const bool isMig = std::ranges::any_of(
      probe.gpus, [](const protocol::GpuFound& gpu) { return gpu.name.find("MIG ") != std::string::npos; });
  return isMig ? text + "; CUDA gives a process at most one MIG instance" : text;
}

std::vector<std::string> pairsWithoutAccess(const GpuProbe& probe, int ranks) {
  std::vector<std::string> pairs;
  for (int i = 0; i < ranks && i < std::ssize(probe.gpus); ++i) {
    for (int j = i + 1; j < ranks && j < 63; ++j) {
      if (probe.gpus[static_cast<std::size_t>(i)].withoutAccess >> j & 1)
        pairs.push_back(fmt::format("{} and {}", i, j));
    }
  }
  return pairs;
}

}  // namespace

std::int64_t GpuProbe::usable() const {
  return std::ranges::count_if(gpus, [](const protocol::GpuFound& gpu) { return gpu.error.empty(); });
}

bool mayHaveGpu(const fs::path& root) {
  std::error_code error;
  return hasEntry(root / "dev", isGpuDeviceFile) || fs::exists(root / "dev" / "dxg", error) ||
         hasEntry(root / "proc" / "driver" / "nvidia" / "gpus", [](const std::string&) { return true; });
}

std::string whyNoNccl(const GpuProbe& probe, int ranks, std::int64_t bytesPerRank) {
  if (!probe.failure.empty()) return probe.failure;
  if (!probe.cuda.error.empty()) {
    const std::string obstacle = driverObstacle(probe.cuda.driver, probe.cuda.runtime);
    return obstacle.empty() ? fmt::format("CUDA lists no GPU: {}{}", probe.cuda.error, visibilityText()) : obstacle;
  }
  if (std::ssize(probe.gpus) < ranks) return whyFewerThan(probe, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const protocol::GpuFound& gpu = probe.gpus[static_cast<std::size_t>(rank)];
    if (!gpu.error.empty())
      return fmt::format("{} cannot run a kernel of this LibTorch: {}{}", nameOf(gpu), gpu.error,
                         otherGpusText(probe, ranks));
    if (gpu.freeBytes < bytesPerRank)
      return fmt::format("a rank needs {} on its GPU, but {} has {} free", bytesText(bytesPerRank), nameOf(gpu),
                         bytesText(gpu.freeBytes));
  }
  return {};
}

std::string peerAccessText(const GpuProbe& probe, int ranks) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> pairs = pairsWithoutAccess(probe, ranks);
  if (pairs.empty()) return {};
  const std::size_t more = pairs.size() > kMostNamed ? pairs.size() - kMostNamed : 0;
  pairs.resize(pairs.size() - more);
  return fmt::format("GPUs {}{} have no direct access to each other's memory: NCCL copies through host memory.",
                     fmt::join(pairs, ", "), more > 0 ? fmt::format(" and {} more pairs", more) : std::string());
}

std::optional<std::int64_t> leastFreeGpuMemory(const GpuProbe& probe, int ranks) {
  if (std::ssize(probe.gpus) < ranks) return std::nullopt;
  std::optional<std::int64_t> least;
  for (int rank = 0; rank < ranks; ++rank) {
    const protocol::GpuFound& gpu = probe.gpus[static_cast<std::size_t>(rank)];
    if (!gpu.error.empty()) return std::nullopt;
    least = std::min(least.value_or(gpu.freeBytes), gpu.freeBytes);
  }
  return least;
}

std::string toText(const GpuProbe& probe) {
  if (!probe.failure.empty()) return probe.failure + ".\n";
  std::string text = protocol::readable(0, probe.cuda).value_or("") + "\n";
  for (const protocol::GpuFound& gpu : probe.gpus) text += protocol::readable(0, gpu).value_or("") + "\n";
  if (const std::string peers = peerAccessText(probe, static_cast<int>(probe.gpus.size())); !peers.empty())
    text += peers + "\n";
  return text;
}

}  // namespace cleave::launch
