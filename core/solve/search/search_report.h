#pragma once
/// The report of a search, the same for all engines.
#include "base/progress.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/search/assignment.h"
#include "solve/trace/events.h"

namespace cleave::solve {

/// Reports the events of a search to a sink and counts them. Each function returns false if the search must stop: the
/// sink returned false, or the progress was cancelled. Use it from one thread.
class SearchReport {
 public:
  SearchReport(TraceSink& sink, const Progress& progress) : m_sink(sink), m_progress(progress) {}

  bool visit(NodeId node, std::uint32_t candidates) {
    ++m_stats.visits;
    return send({.type = EventType::Visit, .node = node.raw(), .detail = candidates});
  }
  bool tried(NodeId node, std::uint32_t ordinal, ChoiceId choice) {
    ++m_stats.tries;
    if (m_stats.tries % kTriesBetweenPolls == 0 && !poll()) return false;
    return send({.type = EventType::Try,
                 .ordinal = static_cast<std::uint16_t>(ordinal),
                 .node = node.raw(),
                 .detail = choice.raw()});
  }
  bool conflict(NodeId node, ConflictId id) {
    ++m_stats.conflicts;
    return send({.type = EventType::Conflict, .node = node.raw(), .detail = id.raw()});
  }
  /// `undone`: number of steps from `target` up to the one before `from`.
  bool backtrack(NodeId from, std::uint32_t undone, NodeId target) {
    ++m_stats.backtracks;
    return send({.type = EventType::Backtrack, .node = from.raw(), .detail = undone, .target = target.raw()});
  }
  /// Reports the last event and returns a result with only the counts.
  SolveResult finish(Outcome outcome, EventType last) {
    send({.type = last});
    return {.outcome = outcome, .stats = m_stats};
  }
  SolveResult stopped() { return finish(Outcome::Stopped, EventType::Stopped); }

 private:
  static constexpr std::uint64_t kTriesBetweenPolls = 1 << 8;     // a few microseconds
  static constexpr std::uint64_t kTriesBetweenReports = 1 << 16;  // a few hundred a second at most

  bool poll() {
    if (m_stats.tries % kTriesBetweenReports == 0) m_progress.report("solve", static_cast<std::int64_t>(m_stats.tries));
    return !m_progress.cancelled();
  }
  bool send(const Event& event) {
    ++m_stats.events;
    return m_sink.onEvent(event);
  }

  TraceSink& m_sink;
  const Progress& m_progress;
  SearchStats m_stats;
};

/// Counts conflicts.
class ConflictCounter {
 public:
  void add(ConflictId id);
  /// All conflicts, the most frequent first.
  std::vector<ConflictRecord> records(const Assignment& assignment) const;
  /// The first of these, for SolveResult::causes.
  std::vector<ConflictRecord> causes(const Assignment& assignment) const;

 private:
  std::vector<std::uint64_t> m_counts;  ///< by ConflictId
};

}  // namespace cleave::solve
