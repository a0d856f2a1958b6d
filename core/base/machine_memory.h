#pragma once
/// How much memory the ranks of a run may find here: the machine's, or the container's where it is given less.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cleave {

/// Bytes; 0 where the kernel does not say.
struct MachineMemory {
  std::int64_t total = 0;
  std::int64_t available = 0;  ///< without pushing anything out: free memory and what the kernel gives back at once
};

/// The least of /proc/meminfo and of every control group (version 1 or 2) that this process is in. `root`: for tests.
MachineMemory machineMemory(const std::filesystem::path& root = "/");

/// The control group that counts a process's memory.
struct MemoryGroup {
  std::filesystem::path folder;
  std::filesystem::path events;  ///< the file that counts the kills
  std::int64_t limit = 0;        ///< bytes that it and the groups around it leave its processes together; 0: no limit
  std::int64_t oomKills = 0;     ///< processes that the kernel has ended in it for want of memory
};
/// While the process lives; nullopt where the kernel does not say.
std::optional<MemoryGroup> memoryGroupOf(pid_t process, const std::filesystem::path& root = "/");
/// The count as it is now; nullopt: the group is gone.
std::optional<std::int64_t> oomKillsIn(const MemoryGroup& group);
/// Processes that the kernel has ended for want of memory, in any group; 0 where it does not say.
std::int64_t oomKills(const std::filesystem::path& root = "/");

}  // namespace cleave
