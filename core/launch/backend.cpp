#include "base/libtorch_folder.h"
#include "base/quantities.h"
#include "launch/launcher.h"

#include <array>
#include <filesystem>

namespace cleave::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kBackendNames{"auto", "gloo", "nccl"};
constexpr const char* kRankProgram = "cleave-rank";

std::string countedGpus(int gpus) { return gpus == 0 ? "no GPU" : gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus); }

/// Why NCCL cannot carry so many ranks here; empty: it can.
std::string whyNoNccl(int gpus, int ranks, bool hasLibrary) {
  if (gpus < ranks) {
    return fmt::format("NCCL needs a GPU for each of {} ranks, and this process may use {}{}", ranks, countedGpus(gpus),
                       std::getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)" : "");
  }
  if (!hasLibrary)
    return fmt::format("{} is not beside {}, because it was built without CUDA", kNcclLibrary, kRankProgram);
  // Ranks run with the LibTorch of the program that starts them.
  if (const auto libTorch = libTorchFolder(); libTorch && !hasCudaLibrary(*libTorch))
    return fmt::format(
        "the LibTorch in {} is for CPUs alone (where it came with Cleave, CLEAVE_TORCH_DIR names another)",
        libTorch->string());
  return {};
}

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

Result<Backend> resolveBackend(Backend wanted, int ranks, std::string* why) {
  const auto say = [&](std::string text) {
    if (why) *why = std::move(text);
  };
  if (wanted == Backend::Gloo) {
    say("Gloo on CPUs, as asked.");
    return Backend::Gloo;
  }
  const int gpus = localGpuCount();
  const auto program = rankProgram();
  std::error_code error;
  const std::string obstacle =
      whyNoNccl(gpus, ranks, program && fs::exists(program->parent_path() / kNcclLibrary, error));
  if (wanted == Backend::Nccl) {
    if (!obstacle.empty())
      return fail(ErrorCode::Environment, "{}: use the backend gloo to run the ranks on CPUs.", obstacle);
    say(fmt::format("NCCL on {} of {}, as asked.", ranks, countedGpus(gpus)));
    return Backend::Nccl;
  }
  if (!obstacle.empty()) {
    say(gpus == 0 ? std::string("Gloo on CPUs: this process may use no GPU.")
                  : fmt::format("Gloo on CPUs: {}.", obstacle));
    return Backend::Gloo;
  }
  say(fmt::format("NCCL: {} for {}.", countedGpus(gpus), counted(ranks, "rank")));
  return Backend::Nccl;
}

}  // namespace cleave::launch
