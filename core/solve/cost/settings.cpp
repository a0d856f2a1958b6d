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

}  // namespace cleave::solve
