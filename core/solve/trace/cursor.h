#pragma once
/// Time travel through a trace: the state of the search after any number of events.
///
/// `step()` is the number of applied events: 0 is before the first event, `trace.size()` after the last. A seek replays
/// at most one snapshot interval. Use a cursor from one thread. Many cursors can read one trace, also while it grows.
///
///     Cursor c(trace);
///     c.seek(trace->size());
///     if (auto s = c.previous(EventType::Conflict)) c.seek(*s);
///     c.placementOf(value);  // nullopt: not assigned at this step
#include "base/progress.h"
#include "solve/trace/trace.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

/// A condition on events, for `next` and `previous`. An event must match all fields that are set.
struct Breakpoint {
  std::optional<EventType> type;       ///< nullopt: any
  graph::NodeId node;                  ///< invalid: any
  std::string op;                      ///< "": any; else an operator ("aten::linear") or its short name ("linear")
  std::string scopePrefix;             ///< "": any; else a scope path, which includes modules inside it
  std::optional<Placement> placement;  ///< matches a Try that gives this placement to the first result
  std::uint32_t minUndone = 0;         ///< matches a Backtrack that undoes at least this many decisions
  std::uint64_t skipHits = 0;          ///< number of matches to skip first
  bool enabled = true;
};

class Cursor {
 public:
  explicit Cursor(std::shared_ptr<const Trace> trace);
  ~Cursor();
  Cursor(Cursor&&) noexcept;
  Cursor& operator=(Cursor&&) noexcept;

  const Trace& trace() const;
  std::shared_ptr<const Trace> sharedTrace() const;
  StepId step() const;
  /// Clamped to the trace's size.
  void seek(StepId step);
  /// The event applied last (step() - 1); nullopt at step 0.
  std::optional<Event> lastEvent() const;

  /// The state after `step()` events; nullopt without an assignment, and for ids that are not in the graph. A parameter
  /// that a layer owns has the layer's choice.
  std::optional<Placement> placementOf(ValueId value) const;
  std::optional<ChoiceId> choiceOf(NodeId node) const;
  /// Index of the Try event that gave the node its current choice.
  std::optional<StepId> assignedAt(NodeId node) const;
  std::size_t assignedCount() const;
  /// Nodes whose choice differs between this state and the state of `other` (for tests).
  std::vector<NodeId> changedSince(const Cursor& other) const;

  /// The nearest position after or before the current one whose event matches. It is an argument of `seek`: the index
  /// of the event + 1. nullopt if no event matches or `progress` is cancelled.
  std::optional<StepId> next(const Breakpoint& breakpoint, const Progress& progress = {}) const;
  std::optional<StepId> previous(const Breakpoint& breakpoint, const Progress& progress = {}) const;
  std::optional<StepId> next(EventType type) const;
  std::optional<StepId> previous(EventType type) const;
  /// The next or previous event that assigns or undoes this node.
  std::optional<StepId> nextChangeOf(NodeId node) const;
  std::optional<StepId> previousChangeOf(NodeId node) const;
  /// The nearest hit of an enabled breakpoint.
  std::optional<StepId> next(const std::vector<Breakpoint>& breakpoints, const Progress& progress = {}) const;
  std::optional<StepId> previous(const std::vector<Breakpoint>& breakpoints, const Progress& progress = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

/// Counts of one bucket of the timeline. While the trace grows, only new events are counted.
struct TimelineBucket {
  std::uint32_t tries = 0, conflicts = 0, backtracks = 0, solutions = 0;
  std::uint32_t minDepth = 0, maxDepth = 0;  ///< assigned nodes
};
std::vector<TimelineBucket> timeline(const Trace& trace, StepId first, StepId last, std::size_t buckets,
                                     const Progress& progress = {});

/// One event as a sentence ("`q_proj` chooses column: 64 output features split over 2 ranks, 32 each").
std::string describe(const Trace& trace, const Event& event);
/// One event as one line of the text form of a trace, for tests and `cleave-cli trace --text`.
std::string toText(const Trace& trace, StepId step, const Event& event);

}  // namespace cleave::solve
