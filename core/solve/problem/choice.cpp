#include "solve/problem/choice.h"

namespace cleave::solve {
namespace {

bool sameStrategy(const rules::LayerStrategy& a, const rules::LayerStrategy& b) {
  return a.strategy == b.strategy && a.input == b.input && a.weight == b.weight && a.bias == b.bias &&
         a.result == b.result && a.before == b.before && a.after == b.after && a.down == b.down && a.reason == b.reason;
}

}  // namespace

bool Choice::operator==(const Choice& other) const {
  if (results != other.results || computedAs != other.computedAs || reason != other.reason ||
      strategy.has_value() != other.strategy.has_value())
    return false;
  return !strategy || sameStrategy(*strategy, *other.strategy);
}

bool ConflictRecord::operator==(const ConflictRecord& other) const {
  return node == other.node && reason == other.reason && culprits == other.culprits && pins == other.pins;
}

std::vector<Placement> placementsOf(const Choice& choice) {
  std::vector<Placement> placements;
  forEachPlacement(choice, [&](const Placement& placement) { placements.push_back(placement); });
  return placements;
}

}  // namespace cleave::solve
