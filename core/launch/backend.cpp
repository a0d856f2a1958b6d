#include "base/quantities.h"
#include "launch/launcher.h"

#include <array>
#include <filesystem>

namespace cleave::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kBackendNames{"auto", "gloo", "nccl"};
constexpr const char* kRankProgram = "cleave-rank";

}  // namespace

std::string_view toText(Backend backend) { return kBackendNames[static_cast<std::size_t>(backend)]; }

std::optional<Backend> parseBackend(std::string_view text) {
  for (std::size_t i = 0; i < kBackendNames.size(); ++i) {
    if (kBackendNames[i] == text) return static_cast<Backend>(i);
  }
  return std::nullopt;
}

Result<fs::path> rankProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {self.parent_path(), self.parent_path() / ".." / "bin"}) {
    if (fs::exists(folder / kRankProgram, error)) return folder / kRankProgram;
  }
  return fail(ErrorCode::Environment, "{} is not beside {}: the installation is incomplete.", kRankProgram,
              self.string());
}

Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank, const Progress& progress) {
  if (wanted == Backend::Gloo) return chooseBackend(wanted, ranks, 0, GpuProbe());
  if (wanted == Backend::Auto && !mayHaveGpu()) return BackendChoice{Backend::Gloo, "Gloo on CPUs: no GPU found."};
  const GpuProbe probe = probeGpus(progress);
  if (progress.cancelled()) return progress.cancelledError("asking CUDA for its GPUs");
  return chooseBackend(wanted, ranks, bytesPerRank, probe);
}

Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank, const GpuProbe& probe) {
  if (wanted == Backend::Gloo) return BackendChoice{Backend::Gloo, "Gloo on CPUs, as requested."};
  // Memory that does not suffice has a message of its own where NCCL is asked for.
  const std::string obstacle = whyNoNccl(probe, ranks, wanted == Backend::Auto ? bytesPerRank : 0);
  if (!obstacle.empty() && wanted == Backend::Nccl)
    return fail(ErrorCode::Environment,
                "NCCL cannot run the ranks on GPUs here: {}. Use the backend gloo to run them on CPUs.", obstacle);
  if (!obstacle.empty()) return BackendChoice{Backend::Gloo, fmt::format("Gloo on CPUs: {}.", obstacle)};
  std::string why = fmt::format("NCCL on {} of {}{}.", ranks, counted(std::ssize(probe.gpus), "GPU"),
                                wanted == Backend::Nccl ? ", as requested" : "");
  if (const std::string peers = peerAccessText(probe, ranks); !peers.empty()) why += " " + peers;
  return BackendChoice{Backend::Nccl, std::move(why)};
}

}  // namespace cleave::launch
