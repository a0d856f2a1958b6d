#include "plan/replication/possible.h"
#include "plan/replication/choice_splits.h"

#include <limits>

namespace cleave::plan {

using graph::NodeId;
using solve::Choice;

bool splits(const Choice& choice, Part part, int ranks) {
  return part == Part::Weight ? splitsWeight(choice, ranks) : splitsWork(choice, ranks);
}

Possible possibleBy(const solve::Optimum& optimum, int ranks) {
  Possible possible;
  possible.isKnown = optimum.knowsAllPlans();
  possible.weight =
      optimum.leastTimes([&](NodeId, const Choice& choice) { return choice.strategy && splitsWeight(choice, ranks); });
  possible.work = optimum.leastTimes([&](NodeId, const Choice& choice) { return splitsWork(choice, ranks); });
  return possible;
}

Possible possibleIn(solve::Problem problem, const Progress& progress) {
  solve::Problem free = problem;
  free.cost.memoryBudget = std::numeric_limits<std::int64_t>::max();
  free.cost.slackPercent = 0;
  const auto sink = solve::makeCountingSink();
  auto result = solve::solve(free, solve::Engine::Optimal, *sink, progress);
  if (result && result->optimum && result->solution) {
    Possible possible = possibleBy(*result->optimum, problem.context.worldSize);
    const solve::PlanCost& cost = result->optimum->cost();
    solve::Variables variables(problem);
    possible.fastest = {std::move(problem),
                        std::move(variables),
                        *std::move(result->solution),
                        cost.femtoseconds(),
                        cost.bytes(),
                        {},
                        {}};
    return possible;
  }
  Possible none;
  none.isKnown = result && result->outcome == solve::Outcome::NoSolution;
  none.weight.resize(problem.graph->nodes.size());
  none.work.resize(problem.graph->nodes.size());
  return none;
}

}  // namespace cleave::plan
