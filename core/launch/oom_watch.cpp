#include "launch/oom_watch.h"

#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::launch {

OomWatch::OomWatch(std::filesystem::path root) : m_root(std::move(root)), m_killsBefore(oomKills(m_root)) {}

void OomWatch::look(pid_t process) {
  auto group = memoryGroupOf(process, m_root);
  if (group && std::ranges::find(m_groups, group->folder, &MemoryGroup::folder) == m_groups.end())
    m_groups.push_back(*std::move(group));
}

std::string OomWatch::why() const {
  const auto textOf = [](const MemoryGroup& group) {
    return fmt::format("its control group is limited to {}", bytesText(group.limit));
  };
  bool isAnyGone = false;
  for (const MemoryGroup& group : m_groups) {
    const auto now = oomKillsIn(group);
    isAnyGone = isAnyGone || !now;
    if (now && *now > group.oomKills && group.limit > 0) return textOf(group);
  }
  // Only the machine's count shows this kill: the group is gone, the kernel does not count by group, or the machine is
  // full.
  if (oomKills(m_root) == m_killsBefore) return {};
  if (isAnyGone && m_groups.front().limit > 0) return textOf(m_groups.front());
  return fmt::format("this machine has {}", bytesText(machineMemory(m_root).total));
}

}  // namespace cleave::launch
