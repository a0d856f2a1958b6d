#include "solve/cost/settings.h"

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

constexpr std::array<std::string_view, 4> kOptimizerNames = {"none", "sgd", "momentum", "adamw"};

}  // namespace

std::string_view toText(Optimizer optimizer) { return kOptimizerNames[static_cast<std::size_t>(optimizer)]; }

std::optional<Optimizer> parseOptimizer(std::string_view text) {
  const auto at = std::find(kOptimizerNames.begin(), kOptimizerNames.end(), text);
  if (at == kOptimizerNames.end()) return std::nullopt;
  return static_cast<Optimizer>(at - kOptimizerNames.begin());
}

OptimizerMemory optimizerMemory(Optimizer optimizer, std::int64_t itemSize) {
  const std::int64_t copy = std::max<std::int64_t>(4, itemSize);
  const std::int64_t master = itemSize < 4 ? copy : 0;
  switch (optimizer) {
    case Optimizer::None: return {};
    case Optimizer::Sgd: return {master, master};
    case Optimizer::Momentum: return {master + copy, master};
    case Optimizer::AdamW: return {master + 2 * copy, master + 2 * copy};
  }
  return {};
}

}  // namespace cleave::solve
