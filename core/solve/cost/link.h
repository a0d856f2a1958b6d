#pragma once
/// The time of collectives on a link, and the fit of a link to measured times, with the formulas of docs/costs.md. Pure
/// and thread-safe.
///
///     const std::vector<CollectiveTime> times{{AllReduce, 1 << 10, 6e-5}, {AllGather, 1 << 24, 9e-3}, ...};
///     CLEAVE_TRY(const LinkFit link, fitLink(times, /*ranks=*/2));
///     link.latencySeconds;   // α
///     link.bytesPerSecond;   // 1/β
#include "base/result.h"
#include "rules/strategy.h"

#include <cstdint>
#include <span>

namespace cleave::solve {

/// The fraction of a full tensor's bytes that one rank sends in a ring: 2·(n-1)/n for an all-reduce, (n-1)/n for an
/// all-gather or a reduce-scatter.
double ringShare(rules::CollectiveKind kind, int ranks);

/// A measured collective; `bytes` is the size of the full tensor.
struct CollectiveTime {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;
  double seconds = 0;
};

struct LinkFit {
  double latencySeconds = 0;  ///< α; at least kLeastLatencySeconds
  double bytesPerSecond = 0;  ///< 1/β; positive and finite
  std::size_t worst = 0;      ///< index of the collective with the largest residual
  double worstResidual = 0;   ///< |predicted - measured| / measured of that collective
  double seconds(rules::CollectiveKind kind, std::int64_t bytes, int ranks) const;
};

/// The lower limit of α. If times grow faster than sizes, the best fit has a negative α.
inline constexpr double kLeastLatencySeconds = 1e-9;

/// The link with the least sum of squared relative errors, Σ ((α + share·V·β - t) / t)². Collectives of a KiB count as
/// much as those of many MiB. BadInput for fewer than 2 ranks, fewer than two different sizes on the link, or a size or
/// time that is not positive. Environment if larger collectives did not take longer, because no bandwidth fits them.
Result<LinkFit> fitLink(std::span<const CollectiveTime> times, int ranks);

}  // namespace cleave::solve
