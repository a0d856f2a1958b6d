#include "graph/states.h"

#include "graph/arguments.h"

#include <algorithm>
#include <array>

namespace cleave::graph {
namespace {

constexpr std::string_view kPast = "past_key_values.", kPresent = "present.";
constexpr std::array<std::string_view, 3> kUses{"none", "fills", "reads"};

}  // namespace

std::string_view toText(CacheUse use) { return kUses[static_cast<std::size_t>(use)]; }

std::optional<CacheUse> parseCacheUse(std::string_view text) {
  const auto at = std::find(kUses.begin(), kUses.end(), text);
  return at == kUses.end() ? std::nullopt : std::optional(static_cast<CacheUse>(at - kUses.begin()));
}

std::string pastName(std::size_t layer, std::string_view part) { return fmt::format("{}{}.{}", kPast, layer, part); }
std::string presentName(std::size_t layer, std::string_view part) {
  return fmt::format("{}{}.{}", kPresent, layer, part);
}
bool isPast(std::string_view input) { return input.starts_with(kPast); }
bool isPresent(std::string_view output) { return output.starts_with(kPresent); }

std::vector<State> statesOf(const Graph& graph) {
  std::unordered_map<std::string_view, ValueId> pasts;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::Input) continue;
    const std::string_view name = graph.value(node.results.front()).name;
    if (isPast(name)) pasts.emplace(name.substr(kPast.size()), node.results.front());
  }
  std::vector<State> states;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Output& output = graph.outputs[i];
    if (!isPresent(output.name)) continue;
    State state{output.name.substr(kPresent.size()), {}, output.value, i};
    if (const auto past = pasts.find(state.name); past != pasts.end()) state.past = past->second;
    states.push_back(std::move(state));
  }
  return states;
}

bool writesInPlace(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::Call || graph.opName(node) != "aten::index_put") return false;
  const ValueId cache = operandAt(node, 0);
  if (!cache.isValid() || !isPast(graph.value(cache).name) || graph.value(cache).users.size() != 1) return false;
  if (graph.node(graph.value(cache).producer).kind != NodeKind::Input) return false;
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const Output& output) {
    return isPresent(output.name) && output.value == node.results.front();
  });
}

}  // namespace cleave::graph
