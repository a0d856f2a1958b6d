#pragma once
/// Search engines: the same rules, the same trace format, different ways through the candidates.
///
/// `reference` is Optimum's search: topological order, chronological backtracking, the first solution wins; explicit stack.
/// `learning` goes the same way and answers the same, but remembers which placements have failed and goes back to a step
/// that can change them. `optimal` answers the cheapest plan of the cost model (optimal/optimum.h).
/// Candidates come in the menu's order; pins and forbids remove candidates (and say so in the conflict).
/// Runs on the caller's thread; stops at `progress`'s token within a millisecond, or when the sink answers false.
#include "base/progress.h"
#include "solve/explain/constraint.h"
#include "solve/optimal/optimum.h"
#include "solve/trace.h"

namespace cleave::solve {

enum class Engine : std::uint8_t { Reference, Learning, Optimal };
std::string_view toText(Engine engine);
std::optional<Engine> parseEngine(std::string_view text);

enum class Outcome : std::uint8_t { Solved, NoSolution, Stopped };

/// What solving one graph again may keep: answers of rules and layer options, transitions of blocks that no changed demand
/// touches. Made for one graph and context; a problem with others empties it. One thread at a time.
class SolveCache {
 public:
  SolveCache();
  ~SolveCache();
  struct Contents;
  Contents& contents() { return *m_contents; }

 private:
  std::unique_ptr<Contents> m_contents;
};

struct SolveResult {
  Outcome outcome = Outcome::Stopped;
  /// Whose answer this is: the engine that was asked, or `learning`, which answers for an `optimal` that finds no plan, because
  /// it can say what stands in the way.
  Engine engine = Engine::Reference;
  std::optional<Solution> solution;      ///< iff Solved
  bool isProved = true;                  ///< NoSolution: false where a search for a plan within the budget ended at `limit`
  std::string limit;                     ///< where not proved, for people: "1000 plans"
  SearchStats stats;
  /// NoSolution: the conflicts the search met, most often first, at most 16.
  std::vector<ConflictRecord> causes;
  /// NoSolution under `learning` and `optimal`: demands (pins, switched-off rules, the budget) that cannot hold together, as
  /// the search proved it; explain/explain.h leaves out of them what is not needed.
  Core core;
  std::int64_t leastBytes = 0;           ///< NoSolution for the budget: what the smallest plan that was found needs; else 0
  std::shared_ptr<const Optimum> optimum;  ///< `optimal` that found a solution
};

/// Of a NoSolution: "There is no solution", or where that was not shown "No solution was found".
std::string_view noSolutionText(const SolveResult& result);

/// BadUsage for a pin that matches nothing. `cache` makes solving again after a change of pins cheaper; it may be null.
Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress = {},
                          SolveCache* cache = nullptr);

/// A sink that keeps tables and counts only: for solving without a recording.
std::unique_ptr<TraceSink> makeCountingSink();

}  // namespace cleave::solve
