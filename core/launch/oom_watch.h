#pragma once
/// Finds out whether the kernel killed a process for lack of memory. Only the kernel's counters show it, and those of
/// the process's control group only while the process lives. Not thread-safe.
///
///     OomWatch watch;
///     while (!child.poll().exited) watch.look(child.pid());
///     if (child.poll().signal == SIGKILL) watch.why();   // "its control group is limited to 2 GiB"
#include "base/machine_memory.h"

#include <string>
#include <vector>

namespace cleave::launch {

class OomWatch {
 public:
  /// `root`: for tests.
  explicit OomWatch(std::filesystem::path root = "/");
  /// Records the control group of a running process. Reads files.
  void look(pid_t process);
  /// For a process that was killed by signal 9 since: a clause with the exhausted limit; empty: the kernel did not kill
  /// it.
  std::string why() const;

 private:
  std::filesystem::path m_root;
  std::int64_t m_killsBefore;         ///< count of the machine
  std::vector<MemoryGroup> m_groups;  ///< groups as first seen, because a dying process is moved to the root group
};

}  // namespace cleave::launch
