#pragma once
/// What a layer's strategy comes to on so many ranks, for everything that names, demands or compares strategies.
#include "rules/strategies.h"

#include <fmt/format.h>

#include <string>

namespace cleave::solve {

/// The strategy; `replicated` where every rank holds a copy of all of the weight, whatever the strategy is called: with
/// 7 heads on 2 ranks, or one KV head on 8, a "column" is nothing but that.
inline rules::Strategy effectiveStrategy(const rules::LayerStrategy& option, int ranks) {
  const bool isCopy = ranks > 1 && option.weight.isSplit() && !rules::isSplit(option, ranks);
  return isCopy ? rules::Strategy::Replicated : option.strategy;
}

/// "column"; "replicated (column, copied)" where that is a copy of all of the weight on every rank.
inline std::string strategyText(rules::Strategy strategy, bool isCopied) {
  const std::string_view name = rules::toText(strategy);
  return isCopied ? fmt::format("{} ({}, copied)", rules::toText(rules::Strategy::Replicated), name)
                  : std::string(name);
}
inline std::string strategyText(const rules::LayerStrategy& option, int ranks) {
  return strategyText(option.strategy, effectiveStrategy(option, ranks) != option.strategy);
}

/// A strategy that sizes refuse, beside one of the same name with copies: "column in 6 equal parts".
inline std::string inEqualParts(std::string_view strategy, int ranks) {
  return fmt::format("{} in {} equal parts", strategy, ranks);
}

}  // namespace cleave::solve
