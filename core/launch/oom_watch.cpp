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
    return fmt::format("the processes of its control group may have {} together", bytesText(group.limit));
  };
  bool isAnyGone = false;
  for (const MemoryGroup& group : m_groups) {
    const auto now = oomKillsIn(group);
    isAnyGone = isAnyGone || !now;
    if (now && *now > group.oomKills && group.limit > 0) return textOf(group);
  }
  // The machine's count alone: a group that is gone, a kernel that counts none by group, or a machine that is full.
  if (oomKills(m_root) == m_killsBefore) return {};
  if (isAnyGone && m_groups.front().limit > 0) return textOf(m_groups.front());
  return fmt::format("this machine has {}", bytesText(machineMemory(m_root).total));
}

}  // namespace cleave::launch
