#include "about/problem_report.h"

#include "about/redaction.h"
#include "base/json.h"
#include "base/machine_memory.h"
#include "base/quantities.h"
#include "launch/gpus.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

extern char** environ;

namespace cleave::about {
namespace {

constexpr std::int64_t kMostSystemFileBytes = 4 << 20;
constexpr std::int64_t kMostRunBytes = 64 << 20;
constexpr std::size_t kLongestLine = 600;

/// The value after the first "key" in a system file such as /proc/cpuinfo, without quotes and blanks.
std::string valueIn(const char* file, std::string_view key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    std::erase(value, '"');
    return value.substr(std::min(value.find_first_not_of(" \t"), value.size()));
  }
  return "not known";
}

int processorsOfThisProcess() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// ", limited to 2 at a time" in a container with a processor quota; else empty.
std::string processorLimit() {
  double quota = -1, period = 0;
  if (std::ifstream both("/sys/fs/cgroup/cpu.max"); both >> quota >> period && quota > 0 && period > 0)
    return fmt::format(", limited to {:.3g} at a time", quota / period);
  std::ifstream quotaFile("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), periodFile("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quotaFile >> quota && periodFile >> period && quota > 0 && period > 0)
    return fmt::format(", limited to {:.3g} at a time", quota / period);
  return {};
}

ReportSection machine() {
  utsname kernel{};
  ::uname(&kernel);
  const MachineMemory memory = machineMemory();
  const auto group = memoryGroupOf(::getpid());
  return {"Machine",
          {"System: " + valueIn("/etc/os-release", "PRETTY_NAME", '='),
           fmt::format("Kernel: {} {}, {}", kernel.sysname, kernel.release, kernel.machine),
           fmt::format("Processor: {}, {} for this process{}", valueIn("/proc/cpuinfo", "model name", ':'),
                       processorsOfThisProcess(), processorLimit()),
           fmt::format("Memory: {}, {} free", bytesText(memory.total), bytesText(memory.available)),
           group && group->limit > 0 ? "Memory limit of the control group: " + bytesText(group->limit)
                                     : "Memory limit of the control group: not set"}};
}

/// A GPU is named by its number: its UUID would identify the machine.
ReportSection gpus() {
  ReportSection section{"GPUs", {}};
  std::error_code error;
  for (fs::directory_iterator gpu("/proc/driver/nvidia/gpus", error), end; !error && gpu != end; gpu.increment(error))
    section.lines.push_back("Installed: " + valueIn((gpu->path() / "information").c_str(), "Model", ':'));
  std::sort(section.lines.begin(), section.lines.end());
  const std::string driver = valueIn("/proc/driver/nvidia/version", "NVRM version", ':');
  section.lines.push_back("Driver: " + driver.substr(std::min(driver.find_first_not_of(' '), driver.size())));
  if (!launch::mayHaveGpu()) {
    section.lines.emplace_back("No GPU device files");
    return section;
  }
  std::istringstream found(launch::toText(launch::probeGpus()));
  for (std::string line; std::getline(found, line);) section.lines.push_back(std::move(line));
  return section;
}

/// Prints names only: a value may be a secret or a folder.
ReportSection environment() {
  constexpr std::array<std::string_view, 24> kPrefixes{"CLEAVE_",  "QT_",   "CUDA_",  "NVIDIA_", "NCCL_",   "TORCH_",
                                                       "PYTORCH_", "GLOO_", "OMP_",   "MKL_",    "HF_",     "HUGGING",
                                                       "XDG_",     "LD_",   "SLURM_", "DISPLAY", "WAYLAND", "LC_",
                                                       "LANG",     "RANK",  "WORLD",  "LOCAL_",  "MASTER_", "MALLOC_"};
  constexpr std::array<std::string_view, 8> kNames{"http_proxy",  "https_proxy", "no_proxy", "HTTP_PROXY",
                                                   "HTTPS_PROXY", "NO_PROXY",    "TMPDIR",   "SSL_CERT_FILE"};
  std::vector<std::string> set = hiddenVariables();
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    const bool matters = std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
                         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                     [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (matters) set.emplace_back(name);
  }
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return {"Environment (names of variables that are set)",
          {set.empty() ? "No relevant variable is set" : fmt::format("{}", fmt::join(set, ", "))}};
}

/// Folder in which the window keeps its runs.
fs::path runsFolder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = data && *data ? fs::path(data) : fs::path(home ? home : "/") / ".local/share";
  return base / "cleave/cleave/runs";
}

/// File names are times, so the last name is the newest.
fs::path newestRun() {
  fs::path newest;
  std::error_code error;
  for (fs::directory_iterator file(runsFolder(), error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() == ".json" && file->path().filename() > newest.filename()) newest = file->path();
  }
  return newest;
}

ReportSection lastRun() {
  ReportSection section{"The window's last run", {}};
  const fs::path file = newestRun();
  if (file.empty()) return {section.title, {"No run is kept"}};
  JsonLimits limits;
  limits.bytes = kMostRunBytes;
  const auto json = readJsonFile(file, limits);
  if (!json || !json->is_object())
    return {section.title, {"The record cannot be read: " + (json ? "" : json.error().message)}};
  section.lines.push_back("Ended at " + file.stem().string() + " (UTC)");
  const auto add = [&](const nlohmann::json& from, const char* key) {
    if (const auto at = from.find(key); at != from.end())
      section.lines.push_back(fmt::format("{}: {}", key, jsonText(*at)));
  };
  if (const auto plan = json->find("plan"); plan != json->end() && plan->is_object()) {
    for (const char* key : {"model", "architecture", "dtype", "batch", "sequence", "ranks", "engine"}) add(*plan, key);
  }
  for (const char* key :
       {"mesh", "backend", "compared_with", "passed", "first_failure", "violations", "notes", "warnings"})
    add(*json, key);
  return section;
}

}  // namespace

std::string toText(const ReportSection& section) {
  static const Redaction kRedaction = Redaction::ofThisProcess();
  std::string text = fmt::format("\n## {}\n\n", section.title);
  for (const std::string& line : section.lines) {
    std::string shown = kRedaction(line);
    if (shown.size() > kLongestLine) shown.resize(kLongestLine);
    text += fmt::format("- {}\n", shown);
  }
  return text;
}

std::string problemReport(const std::string& program, const std::vector<Component>& own) {
  std::string text = fmt::format("# Report of {}\n\n", program);
  text +=
      "Attach this to your problem report. It leaves out secrets, the names of users and machines, and folders below "
      "your home folder. Read it before you send it.\n\n## Versions\n\n";
  const std::string versions = versionText(program, own);
  for (std::size_t at = 0; at <= versions.size();) {
    const auto end = std::min(versions.find('\n', at), versions.size());
    text += fmt::format("- {}\n", versions.substr(at, end - at));
    at = end + 1;
  }
  for (const ReportSection& section : {machine(), gpus(), environment(), lastRun()}) text += toText(section);
  return text;
}

}  // namespace cleave::about
