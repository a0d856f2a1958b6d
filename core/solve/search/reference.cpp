#include "solve/search/reference.h"

#include "solve/search/search_report.h"

namespace cleave::solve {
namespace {

/// Chronological backtracking over the steps in topological order. A frame for each assigned step lies on an explicit
/// stack; the steps that still have an untried candidate lie on a second one, so that going back is one look.
class ReferenceSearch {
 public:
  ReferenceSearch(const Problem& problem, const Variables& variables, TraceSink& sink, const Progress& progress)
      : m_problem(problem), m_variables(variables), m_report(sink, progress), m_memo(problem, variables, sink) {
    m_frames.resize(variables.steps().size());
  }

  SolveResult run() {
    const auto end = static_cast<std::uint32_t>(m_frames.size());
    std::uint32_t at = 0;
    while (at < end) {
      if (!arrive(at)) return m_report.stopped();
      Frame& frame = m_frames[at];
      if (frame.outcome.count > 0) {
        if (frame.outcome.count > 1) m_open.push_back(at);
      } else {
        const auto back = retreat(at);
        if (back == Retreat::Stop) return m_report.stopped();
        if (back == Retreat::Nowhere) return exhausted();
        at = m_open.back();
      }
      if (!tryNext(at)) return m_report.stopped();
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

  NodeId nodeAt(std::uint32_t step) const { return m_variables.steps()[step]; }

  bool arrive(std::uint32_t at) {
    Frame& frame = m_frames[at];
    frame = {m_memo.look(at), 0};
    return m_report.visit(nodeAt(at), frame.outcome.count);
  }

  bool tryNext(std::uint32_t at) {
    Frame& frame = m_frames[at];
    const std::uint32_t ordinal = frame.next++;
    if (frame.next == frame.outcome.count && frame.outcome.count > 1) m_open.pop_back();
    m_memo.place(at, frame.outcome, ordinal);
    return m_report.tried(nodeAt(at), ordinal, m_memo.choiceId(frame.outcome, ordinal));
  }

  /// Reports the conflict at `at` and goes back to the latest step with an untried candidate.
  Retreat retreat(std::uint32_t at) {
    const auto conflict = m_memo.conflict(at, m_frames[at].outcome);
    m_conflicts.add(conflict.id);
    if (!m_report.conflict(nodeAt(at), conflict.id)) return Retreat::Stop;
    if (conflict.isFixed || m_open.empty()) return Retreat::Nowhere;
    const std::uint32_t target = m_open.back();
    return m_report.backtrack(nodeAt(at), at - target, nodeAt(target)) ? Retreat::ToOpen : Retreat::Stop;
  }

  SolveResult exhausted() {
    SolveResult result = m_report.finish(Outcome::NoSolution, EventType::Exhausted);
    result.causes = m_conflicts.causes(m_memo);
    return result;
  }

  SolveResult solved() {
    SolveResult result = m_report.finish(Outcome::Solved, EventType::Solution);
    result.solution = solutionOf(m_problem, m_variables, m_memo, [this](std::uint32_t step) -> const Choice& {
      return m_memo.choice(m_frames[step].outcome, m_frames[step].next - 1);
    });
    return result;
  }

  const Problem& m_problem;
  const Variables& m_variables;
  SearchReport m_report;
  Memo m_memo;
  std::vector<Frame> m_frames;        ///< by step
  std::vector<std::uint32_t> m_open;  ///< steps with an untried candidate, ascending
  ConflictCounter m_conflicts;
};

}  // namespace

SolveResult solveReference(const Problem& problem, const Variables& variables, TraceSink& sink,
                           const Progress& progress) {
  return ReferenceSearch(problem, variables, sink, progress).run();
}

}  // namespace cleave::solve
