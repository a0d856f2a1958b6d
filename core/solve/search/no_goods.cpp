#include "solve/search/no_goods.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// About 100 MB. A search that learns more facts drops all of them and learns again.
constexpr std::size_t kMostFacts = 8u << 20;

std::uint64_t keyOf(std::uint32_t value, std::uint32_t placement) { return std::uint64_t{value} << 32 | placement; }

}  // namespace

void Explanation::clear() {
  facts.clear();
  demands.clear();
}

void Explanation::add(const Fact& fact) {
  const auto at = std::lower_bound(facts.begin(), facts.end(), fact);
  if (at == facts.end() || *at != fact) facts.insert(at, fact);
}

void Explanation::add(std::span<const Demand> more) {
  for (const Demand demand : more) {
    const auto at = std::lower_bound(demands.begin(), demands.end(), demand);
    if (at == demands.end() || *at != demand) demands.insert(at, demand);
  }
}

void Explanation::addBefore(std::uint32_t step, std::span<const Fact> otherFacts,
                            std::span<const Demand> otherDemands) {
  for (const Fact& fact : otherFacts) {
    if (fact.step >= step) break;
    add(fact);
  }
  add(otherDemands);
}

void NoGoods::forgetAll() {
  m_facts.clear();
  m_demands.clear();
  m_entries.clear();
  m_byLastFact.clear();
  std::fill(m_countAt.begin(), m_countAt.end(), 0);
}

void NoGoods::add(const Explanation& explanation) {
  CLEAVE_CHECK(!explanation.facts.empty(), "a no-good has a fact");
  if (m_facts.size() + explanation.facts.size() > kMostFacts) forgetAll();
  const Fact& last = explanation.facts.back();
  m_byLastFact[keyOf(last.value, last.placement)].push_back(static_cast<std::uint32_t>(m_entries.size()));
  ++m_countAt[last.step];
  m_entries.push_back({static_cast<std::uint32_t>(m_facts.size()), static_cast<std::uint32_t>(explanation.facts.size()),
                       static_cast<std::uint32_t>(m_demands.size()),
                       static_cast<std::uint32_t>(explanation.demands.size()), explanation.origin});
  m_facts.insert(m_facts.end(), explanation.facts.begin(), explanation.facts.end());
  m_demands.insert(m_demands.end(), explanation.demands.begin(), explanation.demands.end());
}

const NoGoods::Entry* NoGoods::broken(std::uint32_t step, const Assignment& assignment,
                                      std::span<const ValueId> writes) const {
  if (m_countAt[step] == 0) return nullptr;
  const auto holds = [&](const Fact& fact) { return assignment.placementId(ValueId(fact.value)) == fact.placement; };
  for (ValueId value : writes) {
    if (!value.isValid()) continue;
    const auto found = m_byLastFact.find(keyOf(value.raw(), assignment.placementId(value)));
    if (found == m_byLastFact.end()) continue;
    for (const std::uint32_t index : found->second) {
      const auto all = facts(m_entries[index]);
      if (std::all_of(all.begin(), all.end(), holds)) return &m_entries[index];
    }
  }
  return nullptr;
}

}  // namespace cleave::solve
