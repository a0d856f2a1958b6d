#pragma once
/// What a layer's form comes to on so many ranks, for everything that names, demands or compares forms.
#include "rules/strategies.h"

#include <string>

namespace cleave::solve {

/// The option's strategy; `whole` where every rank holds a copy of all of the weight, whatever the form is called: with
/// 7 heads on 2 ranks, or one KV head on 8, a "column" is nothing but that.
inline rules::Strategy formOf(const rules::StrategyOption& option, int ranks) {
  const bool isCopy = ranks > 1 && option.weight.isSplit() && !rules::isSplit(option, ranks);
  return isCopy ? rules::Strategy::Whole : option.strategy;
}

/// "column"; "column, copied" where that is a copy of all of the weight on every rank.
inline std::string formText(rules::Strategy strategy, bool isCopied) {
  return std::string(rules::toText(strategy)) + (isCopied ? ", copied" : "");
}
inline std::string formText(const rules::StrategyOption& option, int ranks) {
  return formText(option.strategy, formOf(option, ranks) != option.strategy);
}

}  // namespace cleave::solve
