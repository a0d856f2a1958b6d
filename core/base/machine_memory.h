#pragma once
/// Memory that the ranks of a run can use here: the machine's, or the container's if that is less.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cleave {

/// Values in bytes; 0: the kernel does not report it.
struct MachineMemory {
  std::int64_t total = 0;
  std::int64_t available = 0;  ///< free memory and what the kernel reclaims at once, without swapping
};

/// The minimum over /proc/meminfo and all control groups (version 1 or 2) of this process. `root` is for tests.
MachineMemory machineMemory(const std::filesystem::path& root = "/");

/// The control group that counts a process's memory.
struct MemoryGroup {
  std::filesystem::path folder;
  std::filesystem::path events;  ///< the file with the kill count
  std::int64_t limit = 0;        ///< bytes for all processes of it and its parent groups together; 0: no limit
  std::int64_t oomKills = 0;     ///< processes that the kernel killed in it for lack of memory
};
/// For a running process only; nullopt: the kernel does not report it.
std::optional<MemoryGroup> memoryGroupOf(pid_t process, const std::filesystem::path& root = "/");
/// The current count; nullopt: the group is gone.
std::optional<std::int64_t> oomKillsIn(const MemoryGroup& group);
/// Processes in any group that the kernel killed for lack of memory; 0 if it does not report them.
std::int64_t oomKills(const std::filesystem::path& root = "/");

}  // namespace cleave
