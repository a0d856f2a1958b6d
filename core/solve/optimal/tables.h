#pragma once
/// What the `optimal` engine keeps between two searches: costs of candidates, and levels made of them. For one graph,
/// context and cost settings but for budget and slack.
#include "solve/optimal/elimination.h"

namespace cleave::solve::optimal {

struct Tables {
  explicit Tables(std::shared_ptr<CandidateTable> candidates) : steps(std::move(candidates)) {}
  PricedTable steps;
  LevelStore<Level> levels;
  std::uint64_t memoryBytes() const { return steps.memoryBytes() + levels.memoryBytes(); }
};

}  // namespace cleave::solve::optimal
