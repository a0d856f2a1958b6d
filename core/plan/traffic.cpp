#include "plan/plan.h"

namespace cleave::plan {

std::map<rules::CollectiveKind, Traffic> trafficByKind(const Plan& plan) {
  std::map<rules::CollectiveKind, Traffic> traffic;
  for (const CollectivePlan& collective : plan.collectives) {
    Traffic& sum = traffic[collective.kind];
    ++sum.count;
    sum.bytes += collective.bytes;
  }
  return traffic;
}

}  // namespace cleave::plan
