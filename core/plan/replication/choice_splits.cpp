#include "plan/replication/choice_splits.h"

#include <algorithm>

namespace cleave::plan {

using solve::Choice;

bool splitsWeight(const Choice& choice, int ranks) {
  if (!choice.strategy) return false;
  return rules::isSplit(*choice.strategy, ranks) ||
         (choice.strategy->strategy == rules::Strategy::Vocab && choice.strategy->input.isSplit());
}

bool splitsWork(const Choice& choice, int ranks) {
  if (choice.strategy) {
    const bool isOnSequence = choice.strategy->strategy == rules::Strategy::ReplicatedOnSequence;
    return splitsWeight(choice, ranks) || isOnSequence;
  }
  const auto& computed = choice.computedAs.empty() ? choice.results : choice.computedAs;
  return std::any_of(computed.begin(), computed.end(),
                     [&](const rules::Placement& p) { return !p.isReplicatedOn(ranks); });
}

}  // namespace cleave::plan
