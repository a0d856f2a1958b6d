#include "launch/oom_watch.h"

#include "base/quantities.h"

#include <fmt/format.h>

namespace cleave::launch {

OomWatch::OomWatch(std::filesystem::path root) : m_root(std::move(root)), m_killsBefore(oomKills(m_root)) {}

void OomWatch::look(pid_t process) {
  auto group = memoryGroupOf(process, m_root);
  if (!group) return;
  // What was counted before the process was there is no death of its.
  if (m_group && m_group->folder == group->folder) group->oomKills = m_group->oomKills;
  m_group = std::move(group);
}

std::string OomWatch::why() const {
  // The machine's count alone: a group that is gone, a kernel that counts none by group, or a machine that is full.
  const auto now = m_group ? oomKillsIn(*m_group) : std::nullopt;
  const bool isOfGroup = now && *now > m_group->oomKills;
  if (!isOfGroup && oomKills(m_root) == m_killsBefore) return {};
  if (m_group && m_group->limit > 0 && (isOfGroup || !now))
    return fmt::format("the processes of its control group may have {} together", bytesText(m_group->limit));
  return fmt::format("this machine has {}", bytesText(machineMemory(m_root).total));
}

}  // namespace cleave::launch
