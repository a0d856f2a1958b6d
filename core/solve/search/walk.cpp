#include "solve/search/walk.h"

namespace cleave::solve {

Walk::Walk(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
           const Progress& progress)
    : m_problem(problem),
      m_variables(variables),
      m_report(sink, progress),
      m_assignment(problem, variables, table, sink),
      m_frames(variables.deciders().size()) {}

Assignment::FoundConflict Walk::countConflict(std::uint32_t step) {
  const Assignment::FoundConflict found = m_assignment.conflict(step, row(step));
  m_conflicts.add(found.id);
  return found;
}

Walk::Retreat Walk::reportBacktrack(std::uint32_t from, std::uint32_t target) {
  const bool goesOn = m_report.backtrack(nodeAt(from), from - target, nodeAt(target));
  return {goesOn ? Retreat::Kind::ToTarget : Retreat::Kind::Stop, target};
}

SolveResult Walk::exhausted() {
  SolveResult result = m_report.finish(Outcome::NoSolution, EventType::Exhausted);
  result.causes = m_conflicts.causes(m_assignment);
  return result;
}

SolveResult Walk::solved() {
  SolveResult result = m_report.finish(Outcome::Solved, EventType::Solution);
  const Graph& graph = *m_problem.graph;
  Solution& solution = result.solution.emplace();
  solution.placements.reserve(graph.values.size());
  for (const ValueId value : idRange<ValueId>(graph.values.size()))
    solution.placements.push_back(m_assignment.placementOf(value));
  solution.strategies.resize(graph.nodes.size());
  for (std::uint32_t step = 0; step < m_frames.size(); ++step)
    applyStrategy(graph, nodeAt(step), row(step).open[placed(step) - 1], solution);
  return result;
}

}  // namespace cleave::solve
