#include "solve/solve_cache.h"

#include "solve/candidates/domains.h"
#include "solve/optimal/tables.h"

#include <optional>

namespace cleave::solve {
namespace {

constexpr std::uint64_t kMostBytes = 512ull << 20;

bool areEqual(const rules::StrategyContext& a, const rules::StrategyContext& b) {
  return a.worldSize == b.worldSize && a.candidateSet == b.candidateSet && a.sequenceParallel == b.sequenceParallel;
}

CostSettings withoutBudget(CostSettings settings) {
  settings.memoryBudget.reset();
  settings.slackPercent = 0;
  settings.profile.memoryBytes = 0;
  return settings;
}

}  // namespace

struct SolveCache::Contents {
  std::shared_ptr<const Graph> graph;  ///< kept alive, so that no other graph gets its address
  rules::StrategyContext context;
  std::shared_ptr<CandidateTable> candidates = std::make_shared<CandidateTable>();
  std::shared_ptr<Domains> domains;
  std::vector<std::string> domainsRedistributable;  ///< redistributable values of `domains`
  struct Priced {
    CostSettings settings;  ///< without budget and slack
    std::vector<std::string> redistributable;
    optimal::Tables tables;
  };
  std::optional<Priced> priced;

  Contents(const Problem& problem) : graph(problem.graph), context(problem.context) {}
  bool fits(const Problem& problem) const { return graph == problem.graph && areEqual(context, problem.context); }
  std::uint64_t memoryBytes() const { return candidates->memoryBytes() + (priced ? priced->tables.memoryBytes() : 0); }
};

SolveCache::SolveCache() = default;
SolveCache::~SolveCache() = default;

std::shared_ptr<CandidateTable> SolveCache::candidates(const Problem& problem) {
  if (!m_contents || !m_contents->fits(problem) || m_contents->memoryBytes() > kMostBytes)
    m_contents = std::make_unique<Contents>(problem);
  return m_contents->candidates;
}

std::shared_ptr<Domains> SolveCache::domains(const Problem& problem, Work& work) {
  auto table = candidates(problem);
  Contents& kept = *m_contents;
  if (kept.domains && kept.domainsRedistributable == problem.redistributable) return kept.domains;
  auto domains = std::make_shared<Domains>(problem, std::move(table), work);
  if (!domains->isComplete()) return domains;
  kept.domainsRedistributable = problem.redistributable;
  return kept.domains = std::move(domains);
}

optimal::Tables& SolveCache::priced(const Problem& problem) {
  auto table = candidates(problem);
  auto& priced = m_contents->priced;
  CostSettings settings = withoutBudget(problem.cost);
  if (!priced || !(priced->settings == settings) || priced->redistributable != problem.redistributable) {
    priced.reset();
    priced.emplace(Contents::Priced{std::move(settings), problem.redistributable, optimal::Tables(std::move(table))});
  }
  return priced->tables;
}

}  // namespace cleave::solve
