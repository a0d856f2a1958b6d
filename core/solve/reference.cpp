#include "solve/reference.h"

#include "solve/search_result.h"

namespace cleave::solve {
namespace {

constexpr std::uint64_t kTriesBetweenPolls = 1 << 8;     // a few microseconds
constexpr std::uint64_t kTriesBetweenReports = 1 << 16;  // a few hundred a second at most

/// Chronological backtracking over the steps in topological order. A frame for each assigned step lies on an explicit
/// stack; the steps that still have an untried candidate lie on a second one, so that going back is one look.
class ReferenceSearch {
 public:
  ReferenceSearch(const Problem& problem, const Variables& variables, TraceSink& sink, const Progress& progress)
      : m_problem(problem),
        m_variables(variables),
        m_sink(sink),
        m_progress(progress),
        m_memo(problem, variables, sink) {
    m_frames.resize(variables.steps().size());
  }

  SolveResult run() {
    const auto end = static_cast<std::uint32_t>(m_frames.size());
    std::uint32_t at = 0;
    while (at < end) {
      if (!arrive(at)) return stopped();
      Frame& frame = m_frames[at];
      if (frame.outcome.count > 0) {
        if (frame.outcome.count > 1) m_open.push_back(at);
      } else {
        const auto back = retreat(at);
        if (back == Retreat::Stop) return stopped();
        if (back == Retreat::Nowhere) return exhausted();
        at = m_open.back();
      }
      if (!tryNext(at)) return stopped();
      ++at;
    }
    return solved();
  }

 private:
  struct Frame {
    Memo::Outcome outcome;
    std::uint32_t next = 0;  ///< ordinal of the candidate to try next
  };
  enum class Retreat { ToOpen, Nowhere, Stop };

  std::uint32_t nodeAt(std::uint32_t step) const { return m_variables.steps()[step].raw(); }

  bool report(const Event& event) {
    ++m_stats.events;
    return m_sink.onEvent(event);
  }

  bool arrive(std::uint32_t at) {
    Frame& frame = m_frames[at];
    frame = {m_memo.look(at), 0};
    ++m_stats.visits;
    return report({.type = EventType::Visit, .node = nodeAt(at), .detail = frame.outcome.count});
  }

  bool tryNext(std::uint32_t at) {
    Frame& frame = m_frames[at];
    const std::uint32_t ordinal = frame.next++;
    if (frame.next == frame.outcome.count && frame.outcome.count > 1) m_open.pop_back();
    m_memo.place(at, frame.outcome, ordinal);
    ++m_stats.tries;
    if (m_stats.tries % kTriesBetweenPolls == 0 && !poll()) return false;
    return report({.type = EventType::Try,
                   .ordinal = static_cast<std::uint16_t>(ordinal),
                   .node = nodeAt(at),
                   .detail = m_memo.choiceId(frame.outcome, ordinal).raw()});
  }

  bool poll() {
    if (m_stats.tries % kTriesBetweenReports == 0) m_progress.report("solve", static_cast<std::int64_t>(m_stats.tries));
    return !m_progress.cancelled();
  }

  /// Reports the conflict at `at` and goes back to the latest step with an untried candidate.
  Retreat retreat(std::uint32_t at) {
    const auto conflict = m_memo.conflict(at, m_frames[at].outcome);
    m_conflicts.add(conflict.id);
    ++m_stats.conflicts;
    if (!report({.type = EventType::Conflict, .node = nodeAt(at), .detail = conflict.id.raw()})) return Retreat::Stop;
    if (conflict.isFixed || m_open.empty()) return Retreat::Nowhere;
    const std::uint32_t target = m_open.back();
    ++m_stats.backtracks;
    const Event back{.type = EventType::Backtrack, .node = nodeAt(at), .detail = at - target, .target = nodeAt(target)};
    return report(back) ? Retreat::ToOpen : Retreat::Stop;
  }

  SolveResult finish(Outcome outcome, EventType last) {
    report({.type = last});
    return {.outcome = outcome, .stats = m_stats};
  }
  SolveResult stopped() { return finish(Outcome::Stopped, EventType::Stopped); }

  SolveResult exhausted() {
    SolveResult result = finish(Outcome::NoSolution, EventType::Exhausted);
    result.causes = m_conflicts.causes(m_memo);
    return result;
  }

  SolveResult solved() {
    SolveResult result = finish(Outcome::Solved, EventType::Solution);
    result.solution = solutionOf(m_problem, m_variables, m_memo, [this](std::uint32_t step) -> const Choice& {
      return m_memo.choice(m_frames[step].outcome, m_frames[step].next - 1);
    });
    return result;
  }

  const Problem& m_problem;
  const Variables& m_variables;
  TraceSink& m_sink;
  const Progress& m_progress;
  Memo m_memo;
  std::vector<Frame> m_frames;                  ///< by step
  std::vector<std::uint32_t> m_open;            ///< steps with an untried candidate, ascending
  ConflictCounter m_conflicts;
  SearchStats m_stats;
};

}  // namespace

SolveResult solveReference(const Problem& problem, const Variables& variables, TraceSink& sink,
                           const Progress& progress) {
  return ReferenceSearch(problem, variables, sink, progress).run();
}

}  // namespace cleave::solve
