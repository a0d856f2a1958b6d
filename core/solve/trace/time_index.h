#pragma once
/// Snapshots and block summaries of a trace, built lazily, shared by all cursors of that trace and extended while it
/// grows.
///
/// The state of a search is a stack of assigned steps. A snapshot copies that stack every `interval` events; seeking
/// replays at most one interval from the nearest one. When snapshots outgrow their budget every second one is dropped
/// and the interval doubles. Thread-safe: one short lock, held longer only while new events are being indexed.
#include "base/progress.h"
#include "solve/trace/trace.h"

#include <mutex>

namespace cleave::solve {

/// What is assigned after some number of events.
class SearchState {
 public:
  static constexpr std::uint32_t kUnassigned = 0xffffffffu;
  struct Assigned {
    std::uint32_t node = 0;
    std::uint32_t choice = 0;
    StepId step = 0;  ///< index of the Try
  };

  explicit SearchState(std::size_t nodes) : m_slot(nodes, kUnassigned) {}
  /// Events that name unknown nodes change nothing, so that a damaged file cannot do harm.
  void apply(StepId index, const Event& event);
  void restore(std::span<const Assigned> stack);
  const std::vector<Assigned>& stack() const { return m_stack; }
  const Assigned* find(NodeId node) const {
    const std::uint32_t slot = node.index() < m_slot.size() ? m_slot[node.index()] : kUnassigned;
    return slot == kUnassigned ? nullptr : &m_stack[slot];
  }

 private:
  void popFrom(std::uint32_t node);
  std::vector<Assigned> m_stack;      ///< assigned steps in order of the search
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

  explicit TimeIndex(const Trace& trace);
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

  const Trace& m_trace;
  std::mutex m_mutex;
  StepId m_done = 0;  ///< events indexed
  StepId m_interval;
  std::size_t m_heldAssignments = 0;
  SearchState m_state;                                       ///< after m_done events
  std::vector<std::shared_ptr<const Snapshot>> m_snapshots;  ///< at multiples of m_interval
  std::vector<BlockSummary> m_blocks;
  BlockSummary m_open;  ///< the block being filled
};

}  // namespace cleave::solve
