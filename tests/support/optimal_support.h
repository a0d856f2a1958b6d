#pragma once
/// Shared by the tests of the optimal engine.
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

namespace cleave::test {

inline solve::SolveResult solved(const solve::Problem& problem, solve::SolveCache* cache = nullptr) {
  const auto sink = solve::makeCountingSink();
  return need(solve::solve(problem, solve::Engine::Optimal, *sink, {}, cache));
}

inline std::vector<solve::Solution> listed(const solve::Optimum& optimum, std::size_t k,
                                           solve::Optimum::Listing* listing = nullptr) {
  std::vector<solve::Solution> solutions;
  const auto end = need(optimum.best(k, [&](solve::Optimum::Listed plan) -> Result<void> {
    solutions.push_back(std::move(plan.solution));
    return {};
  }));
  if (listing) *listing = end;
  return solutions;
}

inline std::shared_ptr<solve::Problem> llama(const LlamaSizes& sizes, int ranks,
                                             rules::SequenceParallel sequence = rules::SequenceParallel::Auto) {
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = llamaGraph(sizes);
  problem->context = {.worldSize = ranks, .candidateSet = rules::CandidateSet::Full, .sequenceParallel = sequence};
  return problem;
}

/// With this device, replicated layers are fast and split ones are small.
inline solve::DeviceProfile slowLink() {
  solve::DeviceProfile profile;
  profile.floatFlopsPerSecond = 1e9;
  profile.memoryBytesPerSecond = 1e9;
  profile.linkBytesPerSecond = 1e6;
  profile.linkLatencySeconds = 1e-5;
  return profile;
}

}  // namespace cleave::test
