#include "graph/expert_memory.h"

#include "base/checked.h"

#include <algorithm>

namespace cleave::graph {
namespace {

constexpr std::int64_t kPlaceBytes = 2 * sizeof(std::int64_t);

}  // namespace

std::int64_t ExpertMemory::forward(std::int64_t places) const {
  const std::int64_t inside = isClamped ? std::max(5 * features, 2 * features + hidden) : 4 * features + hidden;
  return saturatingMul(places, std::max(inside, 2 * hidden) * itemSize + kPlaceBytes);
}

std::int64_t ExpertMemory::kept(std::int64_t places) const {
  return saturatingMul(places, ((isClamped ? 7 : 4) * features + 3 * hidden + 1) * itemSize + kPlaceBytes);
}

std::int64_t ExpertMemory::backward(std::int64_t places) const {
  return saturatingMul(places, std::max(2 * hidden, 2 * features - 2 * hidden) * itemSize);
}

std::int64_t placesOfOne(std::int64_t places, std::int64_t experts) {
  return experts <= 0 ? 0 : places / experts + (places % experts != 0);
}

}  // namespace cleave::graph
