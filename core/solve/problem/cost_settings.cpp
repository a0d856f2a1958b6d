#include "solve/problem/cost_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace cleave::solve {

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

std::optional<double> parseSlack(std::string_view text) {
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (error != std::errc() || (!unit.empty() && unit != "%" && unit != " %")) return std::nullopt;
  // The comparison is also false for NaN.
  return percent >= 0 && percent <= kMostSlackPercent ? std::optional(percent) : std::nullopt;
}

std::string slackText(double percent) { return fmt::format("{} %", percent); }

Femtoseconds CostSettings::slowest(Femtoseconds fastest) const {
  return fastest +
         Femtoseconds(static_cast<Wide>(std::floor(static_cast<long double>(fastest.count()) * slackPercent / 100)));
}

}  // namespace cleave::solve
