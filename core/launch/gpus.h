#pragma once
/// The GPUs that local ranks can use, as CUDA reports them: `cleave-rank --probe` runs a kernel on each. This process
/// loads no CUDA. Counting device files is not enough: the driver may be missing or too old for the CUDA runtime, a GPU
/// may be too old for its kernels, and under WSL2 GPUs have no device files.
///
///     const GpuProbe probe = probeGpus();
///     if (const std::string obstacle = whyNoNccl(probe, 2); !obstacle.empty()) ...
#include "base/progress.h"
#include "protocol/events.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

struct GpuProbe {
  protocol::CudaFound cuda;
  std::vector<protocol::GpuFound> gpus;  ///< in CUDA's order: local rank i uses GPU i
  std::string failure;                   ///< why CUDA did not answer; empty: it did
  std::int64_t usable() const;           ///< number of GPUs on which a kernel ran
};

/// True if a driver may be installed: device files of NVIDIA's driver, its folder in /proc, or WSL2's /dev/dxg. `root`
/// is "/" except in tests.
bool mayHaveGpu(const std::filesystem::path& root = "/");

/// Queries CUDA in a separate process, which takes seconds, or the time limit if the driver hangs. The answer is cached
/// for `kProbeMemory`, because one run asks several times. Any thread; concurrent callers share one process.
GpuProbe probeGpus(const Progress& progress = {});
inline constexpr std::chrono::seconds kProbeMemory{20};
/// The cached answer of any age; nullopt: no query yet. Starts nothing.
std::optional<GpuProbe> lastGpuProbe();

/// Why NCCL cannot run this many ranks here, a clause; empty: it can. `bytesPerRank`: bytes per rank on its GPU beyond
/// the CUDA context; 0: not checked.
std::string whyNoNccl(const GpuProbe& probe, int ranks, std::int64_t bytesPerRank = 0);
/// "GPUs 0 and 1 have no direct access to each other's memory: NCCL copies through host memory."; empty: all of the
/// first `ranks` have access.
std::string peerAccessText(const GpuProbe& probe, int ranks);
/// The least free memory among the first `ranks` GPUs, in bytes; nullopt: not known.
std::optional<std::int64_t> leastFreeGpuMemory(const GpuProbe& probe, int ranks);

/// The result as lines: versions, then each GPU and whether it is usable.
std::string toText(const GpuProbe& probe);

}  // namespace cleave::launch
