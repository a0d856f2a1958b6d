#include "pipeline/report/replica_sum.h"

#include "base/quantities.h"
#include "pipeline/memory/replica_collectives.h"
#include "solve/cost/link.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

std::string timeOf(double seconds) { return solve::timeText(Femtoseconds(static_cast<Wide>(seconds * 1e15))); }

/// Nanoseconds that a rank spent in collectives with the same ranks of other replicas.
std::int64_t timeWithCounterparts(const std::vector<Stretch>& lane, const program::Mesh& mesh) {
  std::int64_t time = 0;
  for (const Stretch& stretch : lane) {
    const bool isWithThem = stretch.doing == Doing::Collective && stretch.ranks == mesh.dp && stretch.stride == mesh.tp;
    if (isWithThem) time += stretch.length();
  }
  return time;
}

}  // namespace

ReplicaSum replicaSum(const plan::Plan& plan, const program::Mesh& mesh, const Timeline& timeline) {
  const solve::DeviceProfile& profile = plan.spec.cost.profile;
  const solve::LinkFit link{.latencySeconds = profile.linkLatencySeconds, .bytesPerSecond = profile.linkBytesPerSecond};
  ReplicaSum sum;
  for (const plan::CollectivePlan& collective : replicaCollectives(plan, mesh.dp)) {
    ++sum.collectives;
    sum.bytes += collective.bytes;
    sum.predictedSeconds += link.seconds(collective.kind, collective.bytes, mesh.dp);
  }
  if (sum.isEmpty() || timeline.isEmpty()) return sum;
  std::int64_t longest = 0;
  for (const auto& lane : timeline.lanes) longest = std::max(longest, timeWithCounterparts(lane, mesh));
  sum.tookSeconds = static_cast<double>(longest) / 1e9;
  return sum;
}

std::string toText(const ReplicaSum& sum, const plan::Plan& plan, const program::Mesh& mesh) {
  if (sum.isEmpty()) return {};
  const std::string predicted =
      fmt::format("{} predicted on {}", timeOf(sum.predictedSeconds), plan.spec.cost.profile.name);
  return fmt::format("loss and gradients over {} replicas: {} of {}, {}", mesh.dp,
                     counted(sum.collectives, "all-reduce"), bytesText(sum.bytes),
                     sum.tookSeconds ? fmt::format("{} ({})", timeOf(*sum.tookSeconds), predicted) : predicted);
}

}  // namespace cleave::pipeline
