#include "solve/explain/attempt.h"

namespace cleave::solve {
namespace {

/// Work per node of a solve in addition to its events, for variables and rules; under `optimal` for states and costs.
constexpr std::uint64_t kWorkOfANode = 20, kOptimalWorkOfANode = 1'000;

/// Keeps only tables, counts the work, and ends the search at the work limit.
class CountingWork final : public TraceSink {
 public:
  explicit CountingWork(Work& work) : m_work(work), m_tables(makeCountingSink()) {}
  ChoiceId internChoice(Choice choice) override { return m_tables->internChoice(std::move(choice)); }
  ConflictId internConflict(ConflictRecord conflict) override { return m_tables->internConflict(std::move(conflict)); }
  bool onEvent(const Event&) override {
    m_work.spend(1);
    return !m_work.isOver();
  }

 private:
  Work& m_work;
  std::unique_ptr<TraceSink> m_tables;
};

bool isOverBudget(const SolveResult& result) {
  return std::any_of(result.core.constraints.begin(), result.core.constraints.end(),
                     [](const Constraint& constraint) { return constraint.kind == ConstraintKind::Budget; });
}

}  // namespace

Result<Attempt> attempt(const Problem& problem, Work& work, Engine engine, SolveCache* cache) {
  Attempt tried;
  if (engine == Engine::Reference) engine = kExplaining;
  if (work.isOver()) return tried;
  work.spend(problem.graph->nodes.size() * (engine == Engine::Optimal ? kOptimalWorkOfANode : kWorkOfANode));
  CountingWork sink(work);
  CLEAVE_TRY(SolveResult result, solve(problem, engine, sink, work.progress(), cache));
  tried.isOverBudget = isOverBudget(result);
  tried.conflicts = result.stats.conflicts;
  if (result.outcome == Outcome::Solved) {
    tried.answer = Answer::Holds;
    tried.solution = std::move(result.solution);
  } else if (result.outcome == Outcome::NoSolution && result.isProved) {
    tried.answer = Answer::Fails;
    tried.causes = std::move(result.causes);
  }
  return tried;
}

}  // namespace cleave::solve
