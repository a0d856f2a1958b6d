#include "solve/search/reference.h"

#include "solve/search/walk.h"

namespace cleave::solve {
namespace {

/// Chronological backtracking over the steps in topological order. A stack of the steps with untried candidates makes
/// backtracks fast.
class ReferenceSearch {
 public:
  explicit ReferenceSearch(Walk& walk) : m_walk(walk) {}

  bool placeNext(std::uint32_t at) {
    const std::uint32_t candidates = m_walk.candidates(at);
    if (candidates == 0) return false;
    if (candidates > 1 && m_walk.placed(at) == 0) m_open.push_back(at);
    m_walk.place(at);
    if (candidates > 1 && m_walk.placed(at) == candidates) m_open.pop_back();
    return true;
  }

  /// Reports the conflict at `at` and goes back to the latest step with an untried candidate.
  Walk::Retreat retreat(std::uint32_t at) {
    const Assignment::FoundConflict found = m_walk.countConflict(at);
    if (!m_walk.reportConflict(at, found.id)) return {Walk::Retreat::Kind::Stop};
    if (found.conflict->isFixed || m_open.empty()) return {Walk::Retreat::Kind::Nowhere};
    const std::uint32_t target = m_open.back();
    placeNext(target);
    return m_walk.reportBacktrack(at, target);
  }

 private:
  Walk& m_walk;
  std::vector<std::uint32_t> m_open;  ///< steps with an untried candidate, ascending
};

}  // namespace

SolveResult solveReference(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                           const Progress& progress) {
  Walk walk(problem, variables, table, sink, progress);
  ReferenceSearch search(walk);
  switch (walk.run(search)) {
    case Outcome::Solved: return walk.solved();
    case Outcome::NoSolution: return walk.exhausted();
    case Outcome::Stopped: break;
  }
  return walk.stopped();
}

}  // namespace cleave::solve
