#include "solve/trace/time_index.h"

#include <algorithm>

namespace cleave::solve {
namespace {

constexpr StepId kFirstInterval = 1 << 16;
constexpr std::size_t kMostHeldAssignments = (64u << 20) / sizeof(SearchState::Assigned);

}  // namespace

void SearchState::popFrom(std::uint32_t node) {
  while (!m_stack.empty() && m_stack.back().node >= node) {
    m_slot[m_stack.back().node] = kUnassigned;
    m_stack.pop_back();
  }
}

void SearchState::apply(StepId index, const Event& event) {
  if (event.type == EventType::Try) {
    if (event.node >= m_slot.size()) return;
    popFrom(event.node);
    m_slot[event.node] = static_cast<std::uint32_t>(m_stack.size());
    m_stack.push_back({event.node, event.detail, index});
  } else if (event.type == EventType::Backtrack) {
    popFrom(event.target);
  }
}

void SearchState::restore(std::span<const Assigned> stack) {
  for (const Assigned& a : m_stack) m_slot[a.node] = kUnassigned;
  m_stack.assign(stack.begin(), stack.end());
  for (std::size_t i = 0; i < m_stack.size(); ++i) m_slot[m_stack[i].node] = static_cast<std::uint32_t>(i);
}

TimeIndex::TimeIndex(const EventSource& events, std::size_t nodes)
    : m_events(events), m_nodes(nodes), m_interval(kFirstInterval), m_state(nodes) {
  addSnapshot();
}
TimeIndex::~TimeIndex() = default;

void TimeIndex::addSnapshot() {
  m_snapshots.push_back(std::make_shared<const Snapshot>(Snapshot{m_done, m_state.stack()}));
  m_heldAssignments += m_state.stack().size();
  if (m_heldAssignments <= kMostHeldAssignments || m_snapshots.size() < 3) return;
  std::vector<std::shared_ptr<const Snapshot>> kept;
  m_interval *= 2;
  m_heldAssignments = 0;
  for (auto& snapshot : m_snapshots) {
    if (snapshot->step % m_interval != 0) continue;
    m_heldAssignments += snapshot->stack.size();
    kept.push_back(std::move(snapshot));
  }
  m_snapshots = std::move(kept);
}

void TimeIndex::summarize(const Event& event) {
  const std::uint32_t depth = static_cast<std::uint32_t>(m_state.stack().size());
  if (m_done % kBlockEvents == 0) m_open = {.minDepth = depth, .maxDepth = depth};
  m_open.tries += event.type == EventType::Try;
  m_open.conflicts += event.type == EventType::Conflict;
  m_open.backtracks += event.type == EventType::Backtrack;
  m_open.solutions += event.type == EventType::Solution;
  m_open.minDepth = std::min(m_open.minDepth, depth);
  m_open.maxDepth = std::max(m_open.maxDepth, depth);
  m_open.depthAfter = depth;
}

void TimeIndex::extendTo(StepId step, const Progress& progress) {
  std::vector<Event> buffer(kReadEvents);
  while (m_done < step && !progress.cancelled()) {
    const std::size_t wanted = std::min<StepId>(buffer.size(), step - m_done);
    const std::size_t got = m_events.read(m_done, std::span(buffer).first(wanted));
    if (got == 0) return;
    for (std::size_t i = 0; i < got; ++i) {
      m_state.apply(m_done, buffer[i]);
      summarize(buffer[i]);
      ++m_done;
      if (m_done % kBlockEvents == 0) m_blocks.push_back(m_open);
      if (m_done % m_interval == 0) addSnapshot();
    }
  }
}

std::shared_ptr<const TimeIndex::Snapshot> TimeIndex::snapshotBefore(StepId step) {
  const std::lock_guard lock(m_mutex);
  extendTo(std::min(step, m_events.size()), {});
  return m_snapshots[std::min<std::size_t>(step / m_interval, m_snapshots.size() - 1)];
}

std::size_t TimeIndex::depthAt(StepId step) {
  const auto snapshot = snapshotBefore(step);
  SearchState state(m_nodes);
  state.restore(snapshot->stack);
  std::vector<Event> buffer(kReadEvents);
  for (StepId at = snapshot->step; at < step;) {
    const std::size_t got = m_events.read(at, std::span(buffer).first(std::min<StepId>(buffer.size(), step - at)));
    if (got == 0) break;
    for (std::size_t i = 0; i < got; ++i) state.apply(at + i, buffer[i]);
    at += got;
  }
  return state.stack().size();
}

std::vector<BlockSummary> TimeIndex::blocks(StepId end, const Progress& progress) {
  const std::lock_guard lock(m_mutex);
  extendTo(std::min(end, m_events.size()), progress);
  const std::size_t count = std::min<std::size_t>(end / kBlockEvents, m_blocks.size());
  return {m_blocks.begin(), m_blocks.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace cleave::solve
