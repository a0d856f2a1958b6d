#pragma once
/// The GPUs that ranks started here can use, as CUDA itself answers: `cleave-rank --probe` runs a kernel on each. No
/// CUDA is loaded in this process. Counting device files is not enough: a driver may be missing, or too old for the
/// CUDA runtime, a GPU too old for its kernels, and under WSL2 GPUs have no device files of their own.
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
  std::int64_t usable() const;           ///< GPUs on which a kernel ran
};

/// A driver may be here: device files of NVIDIA's driver, its folder in /proc, or WSL2's /dev/dxg. `root`: "/" but for
/// tests.
bool mayHaveGpu(const std::filesystem::path& root = "/");

/// Asks CUDA, in a process of its own: seconds, or the time limit of a driver that hangs. An answer is remembered for
/// `kProbeMemory`, because one run asks several times. Any thread; of several that ask at once one starts the process.
GpuProbe probeGpus(const Progress& progress = {});
inline constexpr std::chrono::seconds kProbeMemory{20};
/// The answer that probeGpus remembers, however old; nullopt: nobody has asked yet. Starts nothing.
std::optional<GpuProbe> lastGpuProbe();

/// Why NCCL cannot run so many ranks here, a clause; empty: it can. `bytesPerRank`: what each needs on its GPU beyond
/// its CUDA context; 0: does not matter.
std::string whyNoNccl(const GpuProbe& probe, int ranks, std::int64_t bytesPerRank = 0);
/// "GPUs 0 and 1 have no direct access to each other's memory: NCCL copies through host memory."; empty: all of the
/// first `ranks` have.
std::string peerAccessText(const GpuProbe& probe, int ranks);
/// Free bytes of the fullest of the first `ranks` GPUs; nullopt: not known.
std::optional<std::int64_t> leastFreeGpuMemory(const GpuProbe& probe, int ranks);

/// What was found, in lines: versions, then each GPU and whether it can be used.
std::string toText(const GpuProbe& probe);

}  // namespace cleave::launch
