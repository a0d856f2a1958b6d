#pragma once
/// What a SolveCache holds: the tables of the `optimal` engine, for one graph and everything else that they depend on.
#include "solve/optimal/elimination.h"
#include "solve/optimal/solve_cache.h"

namespace cleave::solve {

struct SolveCache::Contents {
  optimal::StepTable table;
  optimal::LevelStore levels;

  /// Empties it unless it was filled for a problem that differs in pins, budget and slack alone, or when it has grown
  /// large.
  static void prepare(SolveCache& cache, const Problem& problem);

 private:
  struct Key {
    std::shared_ptr<const Graph> graph;  ///< kept alive, so that no other graph gets its address
    rules::StrategyContext context;
    std::vector<std::string> rulesOff, redistributable;
    CostSettings cost;  ///< without budget and slack
  };
  std::optional<Key> m_key;
};

}  // namespace cleave::solve
