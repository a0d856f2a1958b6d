#pragma once
/// Search engines: the same rules, the same trace format, different ways through the candidates.
///
/// `reference` is Optimum's search: topological order, chronological backtracking, the first solution wins; explicit stack.
/// Candidates come in the menu's order; pins and forbids remove candidates (and say so in the conflict).
/// Runs on the caller's thread; stops at `progress`'s token within a millisecond, or when the sink answers false.
#include "base/progress.h"
#include "solve/trace.h"

namespace cleave::solve {

enum class Engine : std::uint8_t { Reference, Learning, Optimal };
std::string_view toText(Engine engine);
std::optional<Engine> parseEngine(std::string_view text);

enum class Outcome : std::uint8_t { Solved, NoSolution, Stopped };

struct SolveResult {
  Outcome outcome = Outcome::Stopped;
  std::optional<Solution> solution;      ///< iff Solved
  SearchStats stats;
  /// NoSolution: the conflicts the search met, most often first, at most 16.
  std::vector<ConflictRecord> causes;
};

/// BadUsage for an engine that is not built yet, or a pin that matches nothing.
Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress = {});

/// A sink that keeps tables and counts only: for solving without a recording.
std::unique_ptr<TraceSink> makeCountingSink();

}  // namespace cleave::solve
