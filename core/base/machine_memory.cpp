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

/// The value of a line, or 0 if it is missing: "Name: 12 kB" of /proc/meminfo in bytes, "name 12" of memory.stat
/// unchanged.
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

/// The number in a file; nullopt for "max" and for missing files.
std::optional<std::int64_t> numberIn(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

/// File names and fields of one version of control groups.
struct GroupFiles {
  fs::path mount;
  const char *limit, *usage, *events;
  std::vector<const char*> cache;  ///< fields of memory.stat: memory that the kernel reclaims on demand
};

/// The group of a process and its parents, outermost first.
struct Groups {
  GroupFiles files;
  std::vector<fs::path> folders;
};

Groups groupsOf(GroupFiles files, const fs::path& group) {
  Groups groups{std::move(files), {}};
  fs::path folder = groups.files.mount;
  groups.folders.push_back(folder);
  for (const fs::path& part : group.relative_path()) groups.folders.push_back(folder /= part);
  return groups;
}

/// `process`: "self" or its number. Versions 1 and 2 may both be mounted.
std::vector<Groups> memoryGroups(const fs::path& root, const std::string& process) {
  const GroupFiles second{
      root / "sys/fs/cgroup", "memory.max", "memory.current", "memory.events", {"inactive_file", "active_file"}};
  const GroupFiles first{root / "sys/fs/cgroup/memory",
                         "memory.limit_in_bytes",
                         "memory.usage_in_bytes",
                         "memory.oom_control",
                         {"total_inactive_file", "total_active_file"}};
  std::vector<Groups> result;
  std::ifstream groups(root / "proc" / process / "cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/user.slice/x" is version 2, "5:memory:/docker/x" version 1.
    const auto controllers = line.find(':');
    const auto path = controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos) continue;
    const std::string names = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    if (line.starts_with("0::")) result.push_back(groupsOf(second, line.substr(path + 1)));
    if (names.find(",memory,") != std::string::npos) result.push_back(groupsOf(first, line.substr(path + 1)));
  }
  return result;
}

void narrowTo(const GroupFiles& files, const fs::path& folder, MachineMemory& memory) {
  const auto limit = numberIn(folder / files.limit);
  if (!limit || *limit < 0) return;
  std::int64_t used = numberIn(folder / files.usage).value_or(0);
  for (const char* field : files.cache) used -= fieldOf(folder / "memory.stat", field, 1);
  memory.total = std::min(memory.total, *limit);
  memory.available = std::min(memory.available, std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used)));
}

}  // namespace

MachineMemory machineMemory(const fs::path& root) {
  MachineMemory memory;
  memory.total = fieldOf(root / "proc/meminfo", "MemTotal:", 1024);
  memory.available = fieldOf(root / "proc/meminfo", "MemAvailable:", 1024);
  // A group is also bound by its parents' limits.
  for (const Groups& groups : memoryGroups(root, "self")) {
    for (const fs::path& folder : groups.folders) narrowTo(groups.files, folder, memory);
  }
  return memory;
}

std::optional<MemoryGroup> memoryGroupOf(pid_t process, const fs::path& root) {
  std::optional<MemoryGroup> result;
  const std::int64_t machine = fieldOf(root / "proc/meminfo", "MemTotal:", 1024);
  for (const Groups& groups : memoryGroups(root, std::to_string(process))) {
    std::error_code error;
    MemoryGroup group;
    for (const fs::path& folder : groups.folders) {
      // In a container the path may be the host's. The mount then shows the container's group.
      if (fs::exists(folder / groups.files.events, error)) group.folder = folder;
      const auto limit = numberIn(folder / groups.files.limit);
      if (limit && *limit > 0 && *limit < machine && (group.limit == 0 || *limit < group.limit)) group.limit = *limit;
    }
    if (group.folder.empty()) continue;
    group.events = group.folder / groups.files.events;
    group.oomKills = oomKillsIn(group).value_or(0);
    result = group;
  }
  return result;
}

std::optional<std::int64_t> oomKillsIn(const MemoryGroup& group) {
  std::error_code error;
  if (!fs::exists(group.events, error)) return std::nullopt;
  return fieldOf(group.events, "oom_kill", 1);
}

std::int64_t oomKills(const fs::path& root) { return fieldOf(root / "proc/vmstat", "oom_kill", 1); }

}  // namespace cleave
