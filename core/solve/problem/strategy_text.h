#pragma once
/// The effective strategy of a layer on a number of ranks, for code that names, demands or compares strategies.
#include "rules/strategies.h"

#include <fmt/format.h>

#include <string>

namespace cleave::solve {

/// The strategy, or `replicated` if every rank has a full copy of the weight. A "column" of 7 heads on 2 ranks, or of
/// one KV head on 8 ranks, is such a copy.
inline rules::Strategy effectiveStrategy(const rules::LayerStrategy& option, int ranks) {
  const bool isCopy = ranks > 1 && option.weight.isSplit() && !rules::isSplit(option, ranks);
  return isCopy ? rules::Strategy::Replicated : option.strategy;
}

/// "column", or "replicated (column, copied)" if every rank has a full copy of the weight.
inline std::string strategyText(rules::Strategy strategy, bool isCopied) {
  const std::string_view name = rules::toText(strategy);
  return isCopied ? fmt::format("{} ({}, copied)", rules::toText(rules::Strategy::Replicated), name)
                  : std::string(name);
}
inline std::string strategyText(const rules::LayerStrategy& option, int ranks) {
  return strategyText(option.strategy, effectiveStrategy(option, ranks) != option.strategy);
}

/// "column in 6 equal parts": names the strategy that the sizes refuse, if a strategy with copies has the same name.
inline std::string inEqualParts(std::string_view strategy, int ranks) {
  return fmt::format("{} in {} equal parts", strategy, ranks);
}

}  // namespace cleave::solve
