#include "base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace cleave {
namespace {

namespace fs = std::filesystem;

/// "Name: 12 kB" of /proc/meminfo in bytes, "name 12" of memory.stat as it is; 0 when there is no such line.
std::int64_t fieldOf(const fs::path& file, std::string_view name, std::int64_t unit) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t number = 0;
    if (words >> key >> number && key == name) return number * unit;
  }
  return 0;
}

/// The number a file holds; nullopt for "max" and files that are not there.
std::optional<std::int64_t> numberIn(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

/// How one version of control groups names things.
struct GroupFiles {
  fs::path mount;
  const char *limit, *usage;
  std::vector<const char*> cache;  ///< fields of memory.stat: what the kernel gives back when the group needs it
};

void narrowTo(const GroupFiles& files, const fs::path& folder, MachineMemory& memory) {
  const auto limit = numberIn(folder / files.limit);
  if (!limit || *limit < 0) return;
  std::int64_t used = numberIn(folder / files.usage).value_or(0);
  for (const char* field : files.cache) used -= fieldOf(folder / "memory.stat", field, 1);
  memory.total = std::min(memory.total, *limit);
  memory.available = std::min(memory.available, std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used)));
}

/// A group is held to the limits of its parents too.
void narrowBy(const GroupFiles& files, const fs::path& group, MachineMemory& memory) {
  fs::path folder = files.mount;
  narrowTo(files, folder, memory);
  for (const fs::path& part : group.relative_path()) narrowTo(files, folder /= part, memory);
}

}  // namespace

MachineMemory machineMemory(const fs::path& root) {
  MachineMemory memory;
  memory.total = fieldOf(root / "proc/meminfo", "MemTotal:", 1024);
  memory.available = fieldOf(root / "proc/meminfo", "MemAvailable:", 1024);
  const GroupFiles second{root / "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};
  const GroupFiles first{root / "sys/fs/cgroup/memory",
                         "memory.limit_in_bytes",
                         "memory.usage_in_bytes",
                         {"total_inactive_file", "total_active_file"}};
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/user.slice/x" is version 2, "5:memory:/docker/x" version 1.
    const auto controllers = line.find(':');
    const auto path = controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos) continue;
    const std::string names = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    if (line.starts_with("0::")) narrowBy(second, line.substr(path + 1), memory);
    if (names.find(",memory,") != std::string::npos) narrowBy(first, line.substr(path + 1), memory);
  }
  return memory;
}

}  // namespace cleave
