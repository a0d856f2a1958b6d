#include "solve/problem/pins.h"

#include "base/wildcard.h"

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

using rules::Strategy;

constexpr std::array kStrategies = {
    Strategy::Replicated, Strategy::Column,       Strategy::ColumnGather,     Strategy::Row,
    Strategy::RowScatter, Strategy::GatherColumn, Strategy::GatherReplicated, Strategy::ReplicatedOnSequence,
    Strategy::Vocab,      Strategy::VocabScatter, Strategy::ByExpert,         Strategy::InExpert,
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The words "column", "row", "vocab", "expert" and "replicated" mean every strategy of that axis. Any other word is
/// one strategy.
std::vector<Strategy> strategiesNamed(std::string_view word) {
  std::vector<Strategy> found;
  for (Strategy s : kStrategies) {
    if (rules::axisOf(s) == word) found.push_back(s);
  }
  if (found.empty()) {
    if (const auto one = rules::parseStrategy(word)) found.push_back(*one);
  }
  return found;
}

std::vector<NodeId> matchingLayers(std::string_view pattern, const Graph& graph, bool alsoByResult) {
  std::vector<NodeId> found;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (!graph::layerShape(graph, n)) continue;
    const auto& result = graph.value(graph.node(n).results.front()).name;
    if (matchesWildcard(pattern, graph::layerName(graph, n)) || (alsoByResult && matchesWildcard(pattern, result)))
      found.push_back(n);
  }
  return found;
}

/// Matches values by name. If no value matches, a layer's name means its result.
std::vector<ValueId> matchingValues(std::string_view pattern, const Graph& graph, bool withSources) {
  std::vector<ValueId> found;
  for (ValueId v : idRange<ValueId>(graph.values.size())) {
    const bool isComputed = graph.node(graph.value(v).producer).kind == graph::NodeKind::Call;
    if ((withSources || isComputed) && matchesWildcard(pattern, graph.value(v).name)) found.push_back(v);
  }
  if (!found.empty()) return found;
  for (NodeId n : matchingLayers(pattern, graph, false)) found.push_back(graph.node(n).results.front());
  return found;
}

}  // namespace

std::string strategyWords() {
  std::string words = "column, row, vocab, expert, replicated";
  for (Strategy s : kStrategies) {
    const auto word = rules::toText(s);
    if (rules::axisOf(s) != word) words += fmt::format(", {}", word);
  }
  return words;
}

Result<Pin> Pin::parse(std::string_view text) {
  constexpr std::string_view kSyntax =
      "Write NAME=S(1) or NAME=R for a value, LAYER=column for a layer. Write == for that strategy alone, != to "
      "forbid, "
      "* for any characters";
  const std::string whole(trimmed(text));
  // The last `=` separates the parts, because a name may contain `=` but a strategy or placement cannot.
  const auto equals = whole.rfind('=');
  if (equals == std::string::npos) return fail(ErrorCode::BadUsage, "The pin `{}` has no `=`. {}.", whole, kSyntax);
  Pin pin;
  pin.text = whole;
  std::string_view name = std::string_view(whole).substr(0, equals);
  const auto endsIn = [&](char last) {
    const bool does = name.ends_with(last);
    if (does) name.remove_suffix(1);
    return does;
  };
  const bool isExact = endsIn('=');
  pin.forbids = endsIn('!');
  pin.pattern = trimmed(name);
  const std::string_view wanted = trimmed(std::string_view(whole).substr(equals + 1));
  if (pin.pattern.empty())
    return fail(ErrorCode::BadUsage, "The pin `{}` has no name before the `=`. {}.", whole, kSyntax);
  if (wanted.empty())
    return fail(ErrorCode::BadUsage, "The pin `{}` has no strategy or placement after the `=`. {}.", whole, kSyntax);
  const auto alone = isExact ? rules::parseStrategy(wanted) : std::nullopt;
  pin.strategies = alone ? std::vector{*alone} : strategiesNamed(wanted);
  if (!pin.strategies.empty()) return pin;
  pin.placement = Placement::parse(wanted);
  if (pin.placement) return pin;
  return fail(ErrorCode::BadUsage,
              "The pin `{}` has `{}`, which is neither a placement (R, S(0), S(1), ...) nor a strategy ({}).", whole,
              wanted, strategyWords());
}

std::string_view Pin::wanted() const {
  const auto equals = text.rfind('=');
  return equals == std::string::npos ? std::string_view(text) : trimmed(std::string_view(text).substr(equals + 1));
}

bool Pin::admits(const Placement& actual, int ranks) const {
  if (!forbids) return actual == *placement;
  return actual != *placement && !(placement->isReplicated() && actual.isReplicatedOn(ranks));
}

std::string demandFor(std::string_view name, rules::Strategy strategy) {
  const std::string_view word = rules::toText(strategy);
  return fmt::format("{}{}{}", name, strategiesNamed(word).size() > 1 ? "==" : "=", word);
}

PinTargets targetsOf(const Pin& pin, const Graph& graph) {
  PinTargets targets;
  if (pin.placement) {
    targets.values = matchingValues(pin.pattern, graph, /*withSources=*/true);
  } else {
    targets.layers = matchingLayers(pin.pattern, graph, /*alsoByResult=*/true);
  }
  return targets;
}

std::vector<NodeId> nodesWithOperator(std::string_view pattern, const Graph& graph) {
  std::vector<bool> isMatch;
  for (const std::string& op : graph.ops) isMatch.push_back(matchesWildcard(pattern, op));
  std::vector<NodeId> found;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const graph::Node& node = graph.node(n);
    if (node.kind == graph::NodeKind::Call && isMatch[node.op.index()]) found.push_back(n);
  }
  return found;
}

std::vector<ValueId> redistributableValues(std::string_view pattern, const Graph& graph) {
  return matchingValues(pattern, graph, /*withSources=*/false);
}

}  // namespace cleave::solve
