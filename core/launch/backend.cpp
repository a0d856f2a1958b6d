#include "launch/backend.h"

#include "base/quantities.h"

#include <array>

namespace cleave::launch {
namespace {

constexpr std::array<std::string_view, 3> kBackendNames{"auto", "gloo", "nccl"};

}  // namespace

std::string_view toText(Backend backend) { return kBackendNames[static_cast<std::size_t>(backend)]; }

std::optional<Backend> parseBackend(std::string_view text) {
  for (std::size_t i = 0; i < kBackendNames.size(); ++i) {
    if (kBackendNames[i] == text) return static_cast<Backend>(i);
  }
  return std::nullopt;
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
  // If NCCL is requested, too little memory has an error of its own.
  const std::string obstacle = whyNoNccl(probe, ranks, wanted == Backend::Auto ? bytesPerRank : 0);
  if (!obstacle.empty() && wanted == Backend::Nccl)
    return fail(ErrorCode::Environment,
                "NCCL cannot run the ranks on GPUs here: {}. Use the gloo backend to run them on CPUs.", obstacle);
  if (!obstacle.empty()) return BackendChoice{Backend::Gloo, fmt::format("Gloo on CPUs: {}.", obstacle)};
  std::string why = fmt::format("NCCL on {} of {}{}.", ranks, counted(std::ssize(probe.gpus), "GPU"),
                                wanted == Backend::Nccl ? ", as requested" : "");
  if (const std::string peers = peerAccessText(probe, ranks); !peers.empty()) why += " " + peers;
  return BackendChoice{Backend::Nccl, std::move(why)};
}

}  // namespace cleave::launch
