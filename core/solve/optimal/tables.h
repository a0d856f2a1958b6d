#pragma once
/// Data that the `optimal` engine keeps between searches: costs of candidates, and levels. They are valid for one
/// graph, one context and one set of cost settings, with any budget and slack.
#include "solve/optimal/elimination.h"

namespace cleave::solve::optimal {

struct Tables {
  explicit Tables(std::shared_ptr<CandidateTable> candidates) : steps(std::move(candidates)) {}
  PricedTable steps;
  LevelStore<Level> levels;
  std::uint64_t memoryBytes() const { return steps.memoryBytes() + levels.memoryBytes(); }
};

}  // namespace cleave::solve::optimal
