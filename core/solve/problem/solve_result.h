#pragma once
/// The result of an engine, and the names of the engines.
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

/// Counts of a search. Comparisons report `tries` as steps.
struct SearchStats {
  std::uint64_t events = 0, visits = 0, tries = 0, conflicts = 0, backtracks = 0;
};

struct SolveResult {
  Outcome outcome = Outcome::Stopped;
  /// The engine that computed the result. If no plan exists, this is `learning` instead of `optimal`, because it can
  /// explain the conflict.
  Engine engine = Engine::Reference;
  std::optional<Solution> solution;  ///< iff Solved
  bool isProved = true;  ///< NoSolution: false if the search for a plan within the budget reached its `limit`
  std::string limit;     ///< if not proved: the limit as text, "1000 plans"
  SearchStats stats;
  /// NoSolution: conflicts of the search, the most frequent first, at most 16.
  std::vector<ConflictRecord> causes;
  /// NoSolution under `learning` and `optimal`: the demands (pins, switched-off rules, the budget) of the proof that no
  /// plan exists. explain/explain.h removes those that are not needed.
  Core core;
  std::int64_t leastBytes = 0;  ///< NoSolution because of the budget: bytes of the smallest plan found; else 0
  std::shared_ptr<const Optimum> optimum;  ///< set if `optimal` found a solution
};

/// Text for NoSolution: "There is no solution" if that is proved, else "No solution was found".
std::string_view noSolutionText(const SolveResult& result);

}  // namespace cleave::solve
