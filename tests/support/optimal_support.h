#pragma once
/// What the tests of the optimal engine share.
#include "solve/engine.h"
#include "tests/support/llama_graph.h"

#include <QtTest>

namespace cleave::test {

inline solve::SolveResult solved(const solve::Problem& problem, solve::SolveCache* cache = nullptr) {
  const auto sink = solve::makeCountingSink();
  auto result = solve::solve(problem, solve::Engine::Optimal, *sink, {}, cache);
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

inline std::shared_ptr<solve::Problem> llama(const LlamaSizes& sizes, int ranks,
                                             rules::SequenceParallel sequence = rules::SequenceParallel::Auto) {
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = llamaGraph(sizes);
  problem->context = {.worldSize = ranks, .menu = rules::Menu::Full, .sequenceParallel = sequence};
  return problem;
}

inline bool sameSolution(const solve::Solution& a, const solve::Solution& b) {
  if (a.placements != b.placements || a.computedAs != b.computedAs || a.strategies.size() != b.strategies.size())
    return false;
  for (std::size_t i = 0; i < a.strategies.size(); ++i) {
    if (a.strategies[i].has_value() != b.strategies[i].has_value()) return false;
    if (a.strategies[i] && a.strategies[i]->strategy != b.strategies[i]->strategy) return false;
  }
  return true;
}

/// Whole layers are fast, split ones small.
inline solve::DeviceProfile slowLink() {
  solve::DeviceProfile profile;
  profile.floatFlopsPerSecond = 1e9;
  profile.memoryBytesPerSecond = 1e9;
  profile.linkBytesPerSecond = 1e6;
  profile.linkLatencySeconds = 1e-5;
  return profile;
}

}  // namespace cleave::test
