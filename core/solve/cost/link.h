#pragma once
/// What collectives take on a link, and which link explains what collectives took: the formulas of cost_model.h, read
/// in both directions. Pure functions; any thread.
///
///     const std::vector<CollectiveTime> times{{AllReduce, 1 << 10, 6e-5}, {AllGather, 1 << 24, 9e-3}, ...};
///     CLEAVE_TRY(const LinkFit link, fitLink(times, /*ranks=*/2));
///     link.latencySeconds;   // α
///     link.bytesPerSecond;   // 1/β
#include "base/result.h"
#include "rules/strategies.h"

#include <cstdint>
#include <span>

namespace cleave::solve {

/// How much of a collective's V bytes (of the whole tensor) goes over a rank's link in a ring of `ranks`: all-reduce
/// 2·(n-1)/n, all-gather and reduce-scatter (n-1)/n.
double ringShare(rules::CollectiveKind kind, int ranks);

/// A collective that was run, `bytes` being those of the whole tensor.
struct CollectiveTime {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;
  double seconds = 0;
};

struct LinkFit {
  double latencySeconds = 0;  ///< α; at least kLeastLatencySeconds
  double bytesPerSecond = 0;  ///< 1/β; positive and finite
  std::size_t worst = 0;      ///< which collective it explains worst
  double worstResidual = 0;   ///< |predicted - measured| / measured of that one
  double seconds(rules::CollectiveKind kind, std::int64_t bytes, int ranks) const;
};

/// No call takes less. Where times grow faster than sizes, the best α would be negative: then it is this.
inline constexpr double kLeastLatencySeconds = 1e-9;

/// The link with the least sum of squared relative errors: minimises Σ ((α + share·V·β - t) / t)², so that collectives
/// of a KiB count as much as those of many MiB. BadInput for fewer than 2 ranks, fewer than two different amounts of
/// bytes on the link, or a size or time that is not positive; Environment when larger collectives did not take longer,
/// so that no bandwidth explains them.
Result<LinkFit> fitLink(std::span<const CollectiveTime> times, int ranks);

}  // namespace cleave::solve
