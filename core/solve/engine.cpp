#include "solve/engine.h"

#include "solve/learning.h"
#include "solve/optimal/optimal.h"
#include "solve/reference.h"
#include "solve/trace_tables.h"

#include <array>

namespace cleave::solve {
namespace {

constexpr std::array<std::pair<Engine, std::string_view>, 3> kEngines{
    {{Engine::Reference, "reference"}, {Engine::Learning, "learning"}, {Engine::Optimal, "optimal"}}};

/// Keeps the tables only, so that ids mean the same with and without a recording.
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

std::string_view toText(Engine engine) {
  return kEngines[static_cast<std::size_t>(engine)].second;
}

std::optional<Engine> parseEngine(std::string_view text) {
  for (const auto& [engine, name] : kEngines) {
    if (name == text) return engine;
  }
  return std::nullopt;
}

Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress,
                          SolveCache* cache) {
  CLEAVE_TRY_VOID(problem.checkPins());
  sink.onStart(engine);
  if (engine == Engine::Optimal) return solveOptimal(problem, sink, progress, cache);
  const Variables variables(problem);
  SolveResult result = engine == Engine::Learning ? solveLearning(problem, variables, sink, progress)
                                                  : solveReference(problem, variables, sink, progress);
  result.engine = engine;
  return result;
}

std::string_view noSolutionText(const SolveResult& result) {
  return result.isProved ? "There is no solution" : "No solution was found";
}

std::unique_ptr<TraceSink> makeCountingSink() {
  return std::make_unique<CountingSink>();
}

}  // namespace cleave::solve
