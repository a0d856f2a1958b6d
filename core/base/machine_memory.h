#pragma once
/// How much memory the ranks of a run may find here: the machine's, or the container's where it is given less.
#include <cstdint>
#include <filesystem>

namespace cleave {

/// Bytes; 0 where the kernel does not say.
struct MachineMemory {
  std::int64_t total = 0;
  std::int64_t available = 0;  ///< without pushing anything out: free memory and what the kernel gives back at once
};

/// The least of /proc/meminfo and of every control group (version 1 or 2) that this process is in. `root`: for tests.
MachineMemory machineMemory(const std::filesystem::path& root = "/");

}  // namespace cleave
