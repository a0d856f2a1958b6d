#pragma once
/// Time travel through a trace: the state of the search after any number of events.
///
/// `step()` is the number of events applied: 0 is before the first, `trace.size()` after the last. Seeking costs at
/// most one snapshot interval of replay. A cursor belongs to one thread; many cursors can read one trace, also while it
/// grows.
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

/// Where a walk stops. A breakpoint hits at an event; several may be active. All set fields must match.
struct Breakpoint {
  std::optional<EventType> type;       ///< e.g. Conflict
  graph::NodeId node;                  ///< invalid: any
  std::string op;                      ///< "" any, else operator ("aten::linear") or its short name ("linear")
  std::string scopePrefix;             ///< "" any, else a scope path; modules inside count
  std::optional<Placement> placement;  ///< a Try that gives this placement to the first result
  std::uint32_t minUndone = 0;         ///< Backtrack undoing at least so many decisions
  std::uint64_t skipHits = 0;          ///< hit count: pass this many matches first
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
  /// The event just applied (step() - 1); nullopt at step 0.
  std::optional<Event> lastEvent() const;

  /// State after `step()` events; nullopt also for ids the graph does not have. A parameter that a layer owns has the
  /// choice of that layer.
  std::optional<Placement> placementOf(ValueId value) const;
  std::optional<ChoiceId> choiceOf(NodeId node) const;
  /// The step whose Try gave the node its present choice (the index of that event).
  std::optional<StepId> assignedAt(NodeId node) const;
  std::size_t assignedCount() const;
  /// Nodes whose choice differs between the present state and that of `other` (for tests).
  std::vector<NodeId> changedSince(const Cursor& other) const;

  /// First position after / before the present one whose event matches: the value to seek to (event index + 1).
  /// Searches poll `progress` and answer nullopt when there is none or it was cancelled.
  std::optional<StepId> next(const Breakpoint& breakpoint, const Progress& progress = {}) const;
  std::optional<StepId> previous(const Breakpoint& breakpoint, const Progress& progress = {}) const;
  std::optional<StepId> next(EventType type) const;
  std::optional<StepId> previous(EventType type) const;
  /// The next / previous event that assigns or undoes this node.
  std::optional<StepId> nextChangeOf(NodeId node) const;
  std::optional<StepId> previousChangeOf(NodeId node) const;
  /// First hit of any of the enabled breakpoints.
  std::optional<StepId> next(const std::vector<Breakpoint>& breakpoints, const Progress& progress = {}) const;
  std::optional<StepId> previous(const std::vector<Breakpoint>& breakpoints, const Progress& progress = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

/// Per-bucket counts over the whole trace, for the timeline: cheap to compute once, incremental while it grows.
struct TimelineBucket {
  std::uint32_t tries = 0, conflicts = 0, backtracks = 0, solutions = 0;
  std::uint32_t minDepth = 0, maxDepth = 0;  ///< assigned nodes
};
std::vector<TimelineBucket> timeline(const Trace& trace, StepId first, StepId last, std::size_t buckets,
                                     const Progress& progress = {});

/// One event as a sentence ("`q_proj` takes column: 64 output features split over 2 ranks, 32 each").
std::string describe(const Trace& trace, const Event& event);
/// One event as one line of the text form of a trace, for tests and `cleave-cli trace --text`.
std::string toText(const Trace& trace, StepId step, const Event& event);

}  // namespace cleave::solve
