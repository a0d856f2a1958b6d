#include "plan/plan.h"

namespace cleave::plan {

std::map<rules::CollectiveKind, Traffic> trafficByKind(const std::vector<CollectivePlan>& collectives) {
  std::map<rules::CollectiveKind, Traffic> traffic;
  for (const CollectivePlan& collective : collectives) {
    Traffic& sum = traffic[collective.kind];
    ++sum.count;
    sum.bytes += collective.bytes;
  }
  return traffic;
}

}  // namespace cleave::plan
