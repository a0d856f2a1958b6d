#include "solve/engine.h"

#include "solve/optimal/optimal.h"
#include "solve/search/learning.h"
#include "solve/search/reference.h"
#include "solve/trace/trace_tables.h"

namespace cleave::solve {
namespace {

/// Keeps only the tables, so that ids are the same with and without a trace.
class CountingSink final : public TraceSink {
 public:
  ChoiceId internChoice(Choice choice) override { return m_choices.add(std::move(choice)); }
  ConflictId internConflict(ConflictRecord conflict) override { return m_conflicts.add(std::move(conflict)); }
  bool onEvent(const Event&) override { return true; }

 private:
  ChoiceTable m_choices;
  ConflictTable m_conflicts;
};

}  // namespace

Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress,
                          SolveCache* cache) {
  CLEAVE_TRY_VOID(problem.checkPins());
  sink.onStart(engine);
  SolveCache own;
  SolveCache& kept = cache ? *cache : own;
  if (engine == Engine::Optimal) return solveOptimal(problem, kept.priced(problem), sink, progress);
  const Variables variables(problem);
  const auto table = kept.candidates(problem);
  SolveResult result = engine == Engine::Learning ? solveLearning(problem, variables, *table, sink, progress)
                                                  : solveReference(problem, variables, *table, sink, progress);
  result.engine = engine;
  return result;
}

std::unique_ptr<TraceSink> makeCountingSink() { return std::make_unique<CountingSink>(); }

}  // namespace cleave::solve
