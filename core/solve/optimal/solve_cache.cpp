#include "solve/optimal/cached_tables.h"

namespace cleave::solve {
namespace {

constexpr std::uint64_t kMostBytes = 512ull << 20;

CostSettings withoutBudget(CostSettings settings) {
  settings.memoryBudget.reset();
  settings.slackPercent = 0;
  settings.profile.memoryBytes = 0;
  return settings;
}

}  // namespace

SolveCache::SolveCache() : m_contents(std::make_unique<Contents>()) {}
SolveCache::~SolveCache() = default;

void SolveCache::Contents::prepare(SolveCache& cache, const Problem& problem) {
  const auto isSame = [](const rules::StrategyContext& a, const rules::StrategyContext& b) {
    return a.worldSize == b.worldSize && a.menu == b.menu && a.sequenceParallel == b.sequenceParallel;
  };
  Contents& contents = *cache.m_contents;
  const auto& key = contents.m_key;
  const bool fits = key && key->graph == problem.graph && isSame(key->context, problem.context) &&
                    key->rulesOff == problem.rulesOff && key->redistributable == problem.redistributable &&
                    key->cost == withoutBudget(problem.cost) &&
                    contents.table.memoryBytes() + contents.levels.memoryBytes < kMostBytes;
  if (fits) return;
  cache.m_contents = std::make_unique<Contents>();
  cache.m_contents->m_key =
      Key{problem.graph, problem.context, problem.rulesOff, problem.redistributable, withoutBudget(problem.cost)};
}

}  // namespace cleave::solve
