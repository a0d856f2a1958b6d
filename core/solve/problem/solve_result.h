#pragma once
/// What an engine answers.
#include "solve/problem/choice.h"
#include "solve/problem/constraint.h"
#include "solve/problem/problem.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

class Optimum;  // solve/optimal/optimum.h

enum class Engine : std::uint8_t { Reference, Learning, Optimal };
std::string_view toText(Engine engine);
std::optional<Engine> parseEngine(std::string_view text);

enum class Outcome : std::uint8_t { Solved, NoSolution, Stopped };

/// Counts of a search; `tries` is what comparisons call steps.
struct SearchStats {
  std::uint64_t events = 0, visits = 0, tries = 0, conflicts = 0, backtracks = 0;
};

struct SolveResult {
  Outcome outcome = Outcome::Stopped;
  /// Whose answer this is: the engine that was asked, or `learning`, which answers for an `optimal` that finds no plan,
  /// because it can say what stands in the way.
  Engine engine = Engine::Reference;
  std::optional<Solution> solution;  ///< iff Solved
  bool isProved = true;              ///< NoSolution: false where a search for a plan within the budget ended at `limit`
  std::string limit;                 ///< where not proved, for people: "1000 plans"
  SearchStats stats;
  /// NoSolution: the conflicts the search met, most often first, at most 16.
  std::vector<ConflictRecord> causes;
  /// NoSolution under `learning` and `optimal`: demands (pins, switched-off rules, the budget) that cannot hold
  /// together, as the search proved it; explain/explain.h leaves out of them what is not needed.
  Core core;
  std::int64_t leastBytes = 0;  ///< NoSolution for the budget: what the smallest plan that was found needs; else 0
  std::shared_ptr<const Optimum> optimum;  ///< `optimal` that found a solution
};

/// Of a NoSolution: "There is no solution", or where that was not shown "No solution was found".
std::string_view noSolutionText(const SolveResult& result);

}  // namespace cleave::solve
