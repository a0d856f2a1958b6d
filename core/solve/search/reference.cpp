#include "solve/search/reference.h"

#include "solve/search/search_report.h"

namespace cleave::solve {
namespace {

/// Chronological backtracking over the steps in topological order. A frame for each assigned step lies on an explicit
/// stack; the steps that still have an untried candidate lie on a second one, so that going back is one look.
class ReferenceSearch {
 public:
  ReferenceSearch(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                  const Progress& progress)
      : m_problem(problem),
        m_variables(variables),
        m_report(sink, progress),
        m_assignment(problem, variables, table, sink) {
    m_frames.resize(variables.steps().size());
  }

  SolveResult run() {
    const auto end = static_cast<std::uint32_t>(m_frames.size());
    std::uint32_t at = 0;
    while (at < end) {
      if (!arrive(at)) return m_report.stopped();
      Frame& frame = m_frames[at];
      if (frame.options.count() > 0) {
        if (frame.options.count() > 1) m_open.push_back(at);
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
    Assignment::Options options;
    std::uint32_t next = 0;  ///< ordinal of the candidate to try next
  };
  enum class Retreat { ToOpen, Nowhere, Stop };

  NodeId nodeAt(std::uint32_t step) const { return m_variables.steps()[step]; }

  bool arrive(std::uint32_t at) {
    Frame& frame = m_frames[at];
    frame = {m_assignment.look(at), 0};
    return m_report.visit(nodeAt(at), frame.options.count());
  }

  bool tryNext(std::uint32_t at) {
    Frame& frame = m_frames[at];
    const std::uint32_t ordinal = frame.next++;
    if (frame.next == frame.options.count() && frame.options.count() > 1) m_open.pop_back();
    m_assignment.place(at, *frame.options.row, ordinal);
    return m_report.tried(nodeAt(at), ordinal, m_assignment.choiceId(frame.options, ordinal));
  }

  /// Reports the conflict at `at` and goes back to the latest step with an untried candidate.
  Retreat retreat(std::uint32_t at) {
    const Assignment::Met met = m_assignment.conflict(at, *m_frames[at].options.row);
    m_conflicts.add(met.id);
    if (!m_report.conflict(nodeAt(at), met.id)) return Retreat::Stop;
    if (met.conflict->isFixed || m_open.empty()) return Retreat::Nowhere;
    const std::uint32_t target = m_open.back();
    return m_report.backtrack(nodeAt(at), at - target, nodeAt(target)) ? Retreat::ToOpen : Retreat::Stop;
  }

  SolveResult exhausted() {
    SolveResult result = m_report.finish(Outcome::NoSolution, EventType::Exhausted);
    result.causes = m_conflicts.causes(m_assignment);
    return result;
  }

  SolveResult solved() {
    SolveResult result = m_report.finish(Outcome::Solved, EventType::Solution);
    result.solution = solutionOf(m_problem, m_variables, m_assignment, [this](std::uint32_t step) -> const Choice& {
      return m_frames[step].options.row->open[m_frames[step].next - 1];
    });
    return result;
  }

  const Problem& m_problem;
  const Variables& m_variables;
  SearchReport m_report;
  Assignment m_assignment;
  std::vector<Frame> m_frames;        ///< by step
  std::vector<std::uint32_t> m_open;  ///< steps with an untried candidate, ascending
  ConflictCounter m_conflicts;
};

}  // namespace

SolveResult solveReference(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                           const Progress& progress) {
  return ReferenceSearch(problem, variables, table, sink, progress).run();
}

}  // namespace cleave::solve
