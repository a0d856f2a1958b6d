#include "pipeline/replica_sum.h"

#include "base/quantities.h"
#include "program/gradient_buckets.h"
#include "solve/cost/link.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

std::string timeOf(double seconds) { return solve::timeText(Femtoseconds(static_cast<Wide>(seconds * 1e15))); }

/// Nanoseconds that a rank was in collectives with its counterparts.
std::int64_t timeWithCounterparts(const std::vector<Stretch>& lane, const program::Mesh& mesh) {
  std::int64_t time = 0;
  for (const Stretch& stretch : lane) {
    const bool isWithThem = stretch.doing == Doing::Collective && stretch.ranks == mesh.dp && stretch.stride == mesh.tp;
    if (isWithThem) time += stretch.length();
  }
  return time;
}

}  // namespace

std::vector<plan::CollectivePlan> replicaCollectives(const plan::Plan& plan, int replicas) {
  constexpr auto kSum = rules::CollectiveKind::AllReduce;
  std::vector<plan::CollectivePlan> collectives;
  if (replicas == 1) return collectives;
  collectives.push_back({"the loss, over the replicas", kSum, sizeof(double), {}});
  for (const auto& bucket : program::gradientBuckets(*plan.program, graph::findGradients(*plan.program)))
    collectives.push_back({"all gradients, over the replicas", kSum, bucket.bytes, {}});
  return collectives;
}

std::int64_t largestBucket(const plan::Plan& plan, int replicas) {
  std::int64_t bytes = 0;
  for (const plan::CollectivePlan& collective : replicaCollectives(plan, replicas))
    bytes = std::max(bytes, collective.bytes);
  return bytes;
}

ReplicaSum replicaSum(const plan::Plan& plan, const program::Mesh& mesh, const Timeline& timeline) {
  const solve::DeviceProfile& profile = plan.costSettings.profile;
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
      fmt::format("{} predicted on {}", timeOf(sum.predictedSeconds), plan.costSettings.profile.name);
  return fmt::format("loss and gradients over {} replicas: {} of {}, {}", mesh.dp,
                     counted(sum.collectives, "all-reduce"), bytesText(sum.bytes),
                     sum.tookSeconds ? fmt::format("{} ({})", timeOf(*sum.tookSeconds), predicted) : predicted);
}

}  // namespace cleave::pipeline
