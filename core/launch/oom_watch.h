#pragma once
/// Whether it was the kernel that ended a process, because there was no memory left: it tells nobody but its own
/// counters, and of the process's control group only as long as the process lives. Not thread-safe.
///
///     OomWatch watch;
///     while (!child.poll().exited) watch.look(child.pid());
///     if (child.poll().signal == SIGKILL) watch.why();   // "the processes of its control group may have 2 GiB ..."
#include "base/machine_memory.h"

#include <string>
#include <vector>

namespace cleave::launch {

class OomWatch {
 public:
  /// `root`: for tests.
  explicit OomWatch(std::filesystem::path root = "/");
  /// Notes where a process is that lives. Reads files.
  void look(pid_t process);
  /// Of the process that was ended by signal 9 since: a clause that says what there was too little of; empty: somebody
  /// else ended it.
  std::string why() const;

 private:
  std::filesystem::path m_root;
  std::int64_t m_killsBefore;         ///< on the machine
  std::vector<MemoryGroup> m_groups;  ///< where it was seen, each as at first: one that is dying is moved to the root
};

}  // namespace cleave::launch
