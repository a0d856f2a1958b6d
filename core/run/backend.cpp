#include "run/launcher.h"

#include <array>
#include <cctype>
#include <filesystem>

namespace cleave::run {
namespace {

constexpr std::array<std::string_view, 3> kBackendNames{"auto", "gloo", "nccl"};

int countEntries(const std::filesystem::path& folder, bool (*counts)(const std::string& name)) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    count += counts(entry->path().filename().string());
  }
  return count;
}

bool isGpuDeviceFile(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  return name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

}  // namespace

std::string_view toText(Backend backend) {
  return kBackendNames[static_cast<std::size_t>(backend)];
}

std::optional<Backend> parseBackend(std::string_view text) {
  for (std::size_t i = 0; i < kBackendNames.size(); ++i) {
    if (kBackendNames[i] == text) return static_cast<Backend>(i);
  }
  return std::nullopt;
}

int localGpuCount() {
  // The device files are what a container was given; /proc lists every GPU of the machine.
  const int deviceFiles = countEntries("/dev", isGpuDeviceFile);
  return deviceFiles > 0 ? deviceFiles
                         : countEntries("/proc/driver/nvidia/gpus", [](const std::string&) { return true; });
}

Result<Backend> resolveBackend(Backend wanted, int ranks, std::string* why) {
  const int gpus = wanted == Backend::Gloo ? 0 : localGpuCount();
  const auto say = [&](std::string text) {
    if (why) *why = std::move(text);
  };
  switch (wanted) {
    case Backend::Gloo: say("Gloo on CPUs, as asked."); return Backend::Gloo;
    case Backend::Nccl:
      if (gpus < ranks) {
        return fail(ErrorCode::Environment,
                    "NCCL wants one GPU for each of the {} ranks, and this machine offers {}: use the backend gloo to "
                    "run the ranks on CPUs.",
                    ranks, gpus);
      }
      say(fmt::format("NCCL on {} of {} GPUs, as asked.", ranks, gpus));
      return Backend::Nccl;
    case Backend::Auto: break;
  }
  if (gpus >= ranks) {
    say(fmt::format("NCCL: {} GPUs for {} ranks.", gpus, ranks));
    return Backend::Nccl;
  }
  say(gpus == 0
          ? std::string("Gloo on CPUs: this machine offers no GPU.")
          : fmt::format("Gloo on CPUs: {} GPUs are fewer than {} ranks, and ranks do not share a GPU.", gpus, ranks));
  return Backend::Gloo;
}

}  // namespace cleave::run
