#include "launch/gpus.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace cleave::launch {
namespace {

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

int presentGpus() {
  // The device files are what a container was given; /proc lists every GPU of the machine.
  const int deviceFiles = countEntries("/dev", isGpuDeviceFile);
  return deviceFiles > 0 ? deviceFiles
                         : countEntries("/proc/driver/nvidia/gpus", [](const std::string&) { return true; });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool isOneOf(std::string_view gpu, int present) {
  if (gpu.starts_with("GPU-") || gpu.starts_with("MIG-")) return true;
  int index = -1;
  const auto [stop, error] = std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
  return error == std::errc() && stop == gpu.data() + gpu.size() && index >= 0 && index < present;
}

}  // namespace

std::vector<std::string> visibleGpus(int present, const char* cudaVisibleDevices) {
  std::vector<std::string> gpus;
  if (!cudaVisibleDevices) {
    for (int i = 0; i < present; ++i) gpus.push_back(std::to_string(i));
    return gpus;
  }
  for (std::string_view rest = cudaVisibleDevices; static_cast<int>(gpus.size()) < present;) {
    const auto comma = rest.find(',');
    const std::string gpu(trimmed(rest.substr(0, comma)));
    if (!isOneOf(gpu, present) || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) break;
    gpus.push_back(gpu);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return gpus;
}

std::vector<std::string> visibleGpus() { return visibleGpus(presentGpus(), std::getenv("CUDA_VISIBLE_DEVICES")); }

int localGpuCount() { return static_cast<int>(visibleGpus().size()); }

}  // namespace cleave::launch
