#include "plan/text/heads_text.h"

#include "rules/strategies.h"

namespace cleave::plan {

std::string headsText(const graph::Heads& heads, int ranks) {
  if (heads.query % ranks != 0) return rules::doesNotDivide(heads.query, "head", ranks);
  if (heads.keyValue % ranks != 0) return rules::doesNotDivide(heads.keyValue, "KV head", ranks);
  return {};
}

bool sharesKvHeads(const graph::Heads& heads, const rules::StrategyContext& context) {
  const int ranks = context.worldSize;
  return heads.query % ranks == 0 && ranks % heads.keyValue == 0 && context.candidateSet == rules::CandidateSet::Full;
}

}  // namespace cleave::plan
