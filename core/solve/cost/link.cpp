#include "solve/cost/link.h"

#include <algorithm>
#include <cmath>

namespace cleave::solve {
namespace {

using rules::CollectiveKind;

/// Sums of the normal equations of α + x·β = t. Each collective's equation is divided by its t.
struct Sums {
  double one = 0, x = 0, xx = 0, t = 0, xt = 0;

  void add(double bytes, double seconds) {
    const double weight = 1 / (seconds * seconds);
    one += weight;
    x += weight * bytes;
    xx += weight * bytes * bytes;
    t += weight * seconds;
    xt += weight * bytes * seconds;
  }
};

Result<void> check(std::span<const CollectiveTime> times, int ranks) {
  if (ranks < 2) return fail(ErrorCode::BadInput, "A link needs at least 2 ranks, but the collectives have {}.", ranks);
  for (const CollectiveTime& time : times) {
    if (time.bytes > 0 && std::isfinite(time.seconds) && time.seconds > 0) continue;
    return fail(ErrorCode::BadInput, "{} of {} bytes in {:g} s: size and time must be positive.",
                rules::toText(time.kind), time.bytes, time.seconds);
  }
  const auto onLink = [&](const CollectiveTime& time) {
    return ringShare(time.kind, ranks) * static_cast<double>(time.bytes);
  };
  const bool isVaried =
      std::any_of(times.begin(), times.end(), [&](const auto& time) { return onLink(time) != onLink(times.front()); });
  if (isVaried) return {};
  return fail(ErrorCode::BadInput,
              "The fit needs collectives of at least two sizes to separate latency from bandwidth.");
}

void findWorst(LinkFit& fit, std::span<const CollectiveTime> times, int ranks) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double measured = times[i].seconds;
    const double residual = std::abs(fit.seconds(times[i].kind, times[i].bytes, ranks) - measured) / measured;
    if (residual <= fit.worstResidual) continue;
    fit.worst = i;
    fit.worstResidual = residual;
  }
}

}  // namespace

double ringShare(CollectiveKind kind, int ranks) {
  const double rounds = kind == CollectiveKind::AllReduce ? 2 : 1;
  return rounds * (ranks - 1) / ranks;
}

double LinkFit::seconds(CollectiveKind kind, std::int64_t bytes, int ranks) const {
  return latencySeconds + ringShare(kind, ranks) * static_cast<double>(bytes) / bytesPerSecond;
}

Result<LinkFit> fitLink(std::span<const CollectiveTime> times, int ranks) {
  CLEAVE_TRY_VOID(check(times, ranks));
  // Values are relative to the largest, so that squares of bytes and of seconds keep their precision.
  double mostBytes = 0, mostSeconds = 0;
  for (const CollectiveTime& time : times) {
    mostBytes = std::max(mostBytes, ringShare(time.kind, ranks) * static_cast<double>(time.bytes));
    mostSeconds = std::max(mostSeconds, time.seconds);
  }
  Sums sums;
  for (const CollectiveTime& time : times)
    sums.add(ringShare(time.kind, ranks) * static_cast<double>(time.bytes) / mostBytes, time.seconds / mostSeconds);
  const double determinant = sums.one * sums.xx - sums.x * sums.x;
  double alpha = (sums.t * sums.xx - sums.x * sums.xt) / determinant;
  double beta = (sums.one * sums.xt - sums.x * sums.t) / determinant;
  // With α at its lower limit, β is the only unknown.
  if (const double least = kLeastLatencySeconds / mostSeconds; !(alpha >= least)) {
    alpha = least;
    beta = (sums.xt - alpha * sums.x) / sums.xx;
  }
  LinkFit fit;
  fit.latencySeconds = alpha * mostSeconds;
  fit.bytesPerSecond = mostBytes / (beta * mostSeconds);
  if (!(beta > 0) || !std::isfinite(fit.bytesPerSecond)) {
    return fail(
        ErrorCode::Environment,
        "Larger collectives did not take longer than small ones, so no bandwidth fits them. Measure again on an "
        "idle machine.");
  }
  findWorst(fit, times, ranks);
  return fit;
}

}  // namespace cleave::solve
