#include "solve/problem/problem.h"

#include "base/edit_distance.h"
#include "base/wildcard.h"

#include <algorithm>

namespace cleave::solve {
namespace {

std::string withoutStars(std::string_view pattern) {
  std::string plain(pattern);
  std::erase(plain, '*');
  return plain;
}

/// Up to three of `names` that are similar to the pattern: first names that contain it or that it contains, then names
/// by edit distance.
std::vector<std::string> nearest(std::string_view pattern, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 200;
  const std::string wanted = withoutStars(pattern).substr(0, kLongest);
  if (wanted.empty()) return {};
  const std::size_t limit = std::max<std::size_t>(3, wanted.size() / 2);
  std::vector<std::pair<std::size_t, const std::string*>> scored;
  for (const std::string& name : names) {
    const bool contains =
        name.find(wanted) != std::string::npos || (name.size() >= 3 && wanted.find(name) != std::string::npos);
    const std::size_t score =
        contains ? 0 : 1 + editDistance(wanted, std::string_view(name).substr(0, kLongest), limit);
    if (score <= limit) scored.emplace_back(score, &name);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> found;
  for (const auto& [score, name] : scored) {
    if (found.size() == 3) break;
    if (std::find(found.begin(), found.end(), *name) == found.end()) found.push_back(*name);
  }
  return found;
}

std::string didYouMean(std::string_view pattern, const std::vector<std::string>& names) {
  const auto close = nearest(pattern, names);
  return close.empty() ? std::string() : fmt::format(" Did you mean {}?", fmt::join(close, ", "));
}

std::vector<std::string> layerNames(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n)) names.push_back(graph::layerName(graph, n));
  }
  return names;
}

std::vector<std::string> valueNames(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.values.size());
  for (const auto& value : graph.values) names.push_back(value.name);
  return names;
}

Result<void> noLayerFound(const Pin& pin, const Graph& graph) {
  for (const auto& value : graph.values) {
    if (!matchesWildcard(pin.pattern, value.name)) continue;
    return fail(ErrorCode::BadUsage,
                "The pin `{}` gives a strategy to `{}`, which is not a layer. Pin its placement instead, such as {}=R "
                "or {}=S(0).",
                pin.text, value.name, value.name, value.name);
  }
  const std::vector<std::string> names = layerNames(graph);
  const std::string inside = pin.pattern + ".*";
  const bool isModule =
      std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matchesWildcard(inside, name); });
  return fail(ErrorCode::BadUsage, "The pin `{}` matches no layer of this model.{}", pin.text,
              isModule ? fmt::format(" Use `{}` for the layers in it.", inside) : didYouMean(pin.pattern, names));
}

Result<void> checkPlacementFits(const Pin& pin, const PinTargets& targets, const Graph& graph) {
  const Placement& placement = *pin.placement;
  if (placement.isReplicated() || targets.values.empty()) return {};
  for (ValueId v : targets.values) {
    if (placement.lastDim() < static_cast<int>(graph.shapeOf(v).size())) return {};
  }
  const auto& first = graph.value(targets.values.front());
  const std::size_t rank = first.type.shape.size();
  return fail(ErrorCode::BadUsage, "The pin `{}` splits dimension {}, but {} {} has {}.", pin.text, placement.lastDim(),
              first.name, graph::toText(first.type),
              rank == 0   ? "no dimensions"
              : rank == 1 ? "only dimension 0"
                          : fmt::format("only dimensions 0 to {}", rank - 1));
}

Result<void> checkRuleOff(const std::string& pattern, const Graph& graph) {
  if (!nodesWithOperator(pattern, graph).empty()) return {};
  return fail(ErrorCode::BadUsage, "This model has no operator `{}`, so its rule cannot be switched off.{}", pattern,
              didYouMean(pattern, {graph.ops.begin(), graph.ops.end()}));
}

Result<void> checkRedistribution(const std::string& pattern, const Graph& graph) {
  if (!redistributableValues(pattern, graph).empty()) return {};
  std::vector<std::string> names;
  for (const auto& value : graph.values) {
    const bool isComputed = graph.node(value.producer).kind == graph::NodeKind::Call;
    if (isComputed) names.push_back(value.name);
    if (isComputed || !matchesWildcard(pattern, value.name)) continue;
    return fail(ErrorCode::BadUsage,
                "`{}` is an input, a parameter or a constant, so it cannot be redistributed. Name a computed value or "
                "a layer.",
                value.name);
  }
  for (std::string& layer : layerNames(graph)) names.push_back(std::move(layer));
  return fail(ErrorCode::BadUsage, "This model has no value or layer `{}` to redistribute.{}", pattern,
              didYouMean(pattern, names));
}

}  // namespace

Result<void> Problem::checkPins() const {
  for (const Pin& pin : pins) {
    const PinTargets targets = targetsOf(pin, *graph);
    if (!pin.placement && targets.layers.empty()) return noLayerFound(pin, *graph);
    if (pin.placement && targets.values.empty()) {
      return fail(ErrorCode::BadUsage, "The pin `{}` matches no value of this graph.{}", pin.text,
                  didYouMean(pin.pattern, valueNames(*graph)));
    }
    if (pin.placement && !pin.forbids) CLEAVE_TRY_VOID(checkPlacementFits(pin, targets, *graph));
  }
  for (const std::string& pattern : rulesOff) CLEAVE_TRY_VOID(checkRuleOff(pattern, *graph));
  for (const std::string& pattern : redistributable) CLEAVE_TRY_VOID(checkRedistribution(pattern, *graph));
  return {};
}

}  // namespace cleave::solve
