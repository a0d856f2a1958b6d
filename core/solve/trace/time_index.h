#pragma once
/// Snapshots and block summaries of a trace. All its cursors share them. They are built lazily, and extended while the
/// trace grows.
///
/// The state of a search is a stack of assigned steps. A snapshot copies that stack every `interval` events, so a seek
/// replays at most one interval. If the snapshots exceed their budget, every second one is dropped and the interval
/// doubles. Thread-safe: one lock, which blocks for long only while new events are indexed.
#include "base/progress.h"
#include "solve/trace/event_source.h"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace cleave::solve {

/// The assignments after a number of events.
class SearchState {
 public:
  static constexpr std::uint32_t kUnassigned = 0xffffffffu;
  struct Assigned {
    std::uint32_t node = 0;
    std::uint32_t choice = 0;
    StepId step = 0;  ///< index of the Try
  };

  explicit SearchState(std::size_t nodes) : m_slot(nodes, kUnassigned) {}
  /// Ignores events with unknown nodes, so that a damaged file is harmless.
  void apply(StepId index, const Event& event);
  void restore(std::span<const Assigned> stack);
  const std::vector<Assigned>& stack() const { return m_stack; }
  const Assigned* find(NodeId node) const {
    const std::uint32_t slot = node.index() < m_slot.size() ? m_slot[node.index()] : kUnassigned;
    return slot == kUnassigned ? nullptr : &m_stack[slot];
  }

 private:
  void popFrom(std::uint32_t node);
  std::vector<Assigned> m_stack;      ///< assigned steps in the order of the search
  std::vector<std::uint32_t> m_slot;  ///< by NodeId: index into m_stack
};

struct BlockSummary {
  std::uint32_t tries = 0, conflicts = 0, backtracks = 0, solutions = 0;
  std::uint32_t minDepth = 0, maxDepth = 0;
  std::uint32_t depthAfter = 0;
};

class TimeIndex {
 public:
  static constexpr std::size_t kBlockEvents = 1 << 9;

  /// `nodes`: number of nodes in the graph of these events. The source must outlive the index.
  TimeIndex(const EventSource& events, std::size_t nodes);
  ~TimeIndex();

  struct Snapshot {
    StepId step = 0;  ///< events applied
    std::vector<SearchState::Assigned> stack;
  };
  /// The latest snapshot at or before `step`.
  std::shared_ptr<const Snapshot> snapshotBefore(StepId step);
  /// Steps assigned after `step` events.
  std::size_t depthAt(StepId step);
  /// Summaries of all complete blocks of kBlockEvents events among the first `end` events.
  std::vector<BlockSummary> blocks(StepId end, const Progress& progress = {});

 private:
  void extendTo(StepId step, const Progress& progress);
  void addSnapshot();
  void summarize(const Event& event);

  const EventSource& m_events;
  std::size_t m_nodes;
  std::mutex m_mutex;
  StepId m_done = 0;  ///< events indexed
  StepId m_interval;
  std::size_t m_heldAssignments = 0;
  SearchState m_state;                                       ///< after m_done events
  std::vector<std::shared_ptr<const Snapshot>> m_snapshots;  ///< at multiples of m_interval
  std::vector<BlockSummary> m_blocks;
  BlockSummary m_open;  ///< summary of the incomplete last block
};

}  // namespace cleave::solve
