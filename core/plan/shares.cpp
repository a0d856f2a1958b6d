#include "plan/shares.h"

#include <algorithm>

namespace cleave::plan {
namespace {

double partOf(Wide part, Wide whole) {
  return whole <= 0 ? 1 : std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

/// The saved part of the most that a plan can save, which is all but one part in `ranks`.
double shareOf(Wide whole, Wide onRank, int ranks) {
  if (ranks <= 1 || whole <= 0) return 0;
  const double kept = static_cast<double>(onRank) / static_cast<double>(whole);
  return std::clamp((1 - kept) / (1 - 1.0 / ranks), 0.0, 1.0);
}

}  // namespace

double Shares::heldWeights() const { return partOf(rankWeightBytes, weightBytes); }
double Shares::partOfWeights(std::int64_t bytes) const { return partOf(bytes, weightBytes); }
double Shares::computedFlops() const { return partOf(rankFlops, flops); }
double Shares::flopsShare() const { return shareOf(flops, rankFlops, ranks); }
double Shares::weightShare() const { return shareOf(weightBytes, rankWeightBytes, ranks); }

}  // namespace cleave::plan
