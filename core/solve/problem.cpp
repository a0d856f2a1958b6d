#include "solve/problem.h"

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

using rules::Strategy;

constexpr std::array kStrategies = {
    Strategy::Whole,        Strategy::Column,      Strategy::ColumnGather,    Strategy::Row,   Strategy::RowScatter,
    Strategy::GatherColumn, Strategy::GatherWhole, Strategy::WholeOnSequence, Strategy::Vocab, Strategy::VocabScatter,
    Strategy::ByExpert,     Strategy::InExpert,
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// "column", "row", "vocab", "expert" and "replicated" mean every strategy of that axis; any other word is one strategy.
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

std::string strategyWords() {
  std::string words = "column, row, vocab, expert, replicated";
  for (Strategy s : kStrategies) {
    const auto word = rules::toText(s);
    if (word != "column" && word != "row" && word != "vocab") words += fmt::format(", {}", word);
  }
  return words;
}

/// Levenshtein distance, given up (returns limit) once every cell of a row has reached `limit`.
std::size_t editDistance(std::string_view a, std::string_view b, std::size_t limit) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    std::size_t best = row[0];
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      best = std::min(best, row[j]);
    }
    if (best >= limit) return limit;
  }
  return row[b.size()];
}

std::string withoutStars(std::string_view pattern) {
  std::string plain(pattern);
  std::erase(plain, '*');
  return plain;
}

/// Up to three of `names` that resemble the pattern: those that contain it (or its last part) first, then by edits.
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
    if (!matches(pin.pattern, value.name)) continue;
    return fail(ErrorCode::BadUsage,
                "The pin `{}` gives a strategy to `{}`, which is not a layer: pin its placement instead, such as {}=R "
                "or {}=S(0).",
                pin.text, value.name, value.name, value.name);
  }
  const std::vector<std::string> names = layerNames(graph);
  const std::string inside = pin.pattern + ".*";
  const bool isModule = std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(inside, name); });
  return fail(ErrorCode::BadUsage, "The pin `{}` matches no layer of this model.{}", pin.text,
              isModule ? fmt::format(" `{}` names the layers in it.", inside) : didYouMean(pin.pattern, names));
}

Result<void> checkPlacementFits(const Pin& pin, const PinTargets& targets, const Graph& graph) {
  const Placement& placement = *pin.placement;
  if (placement.isReplicated() || targets.values.empty()) return {};
  for (ValueId v : targets.values) {
    if (placement.lastDim() < static_cast<int>(graph.shapeOf(v).size())) return {};
  }
  const auto& first = graph.value(targets.values.front());
  return fail(ErrorCode::BadUsage, "The pin `{}` splits dimension {}, but {} {} has only the dimensions 0 to {}.",
              pin.text, placement.lastDim(), first.name, graph::toText(first.type),
              static_cast<int>(first.type.shape.size()) - 1);
}

std::vector<NodeId> matchingLayers(std::string_view pattern, const Graph& graph, bool alsoByResult) {
  std::vector<NodeId> found;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (!graph::layerShape(graph, n)) continue;
    const auto& result = graph.value(graph.node(n).results.front()).name;
    if (matches(pattern, graph::layerName(graph, n)) || (alsoByResult && matches(pattern, result))) found.push_back(n);
  }
  return found;
}

/// By name; a layer's name stands for its result where no value has that name.
std::vector<ValueId> matchingValues(std::string_view pattern, const Graph& graph, bool withSources) {
  std::vector<ValueId> found;
  for (ValueId v : idRange<ValueId>(graph.values.size())) {
    const bool isComputed = graph.node(graph.value(v).producer).kind == graph::NodeKind::Call;
    if ((withSources || isComputed) && matches(pattern, graph.value(v).name)) found.push_back(v);
  }
  if (!found.empty()) return found;
  for (NodeId n : matchingLayers(pattern, graph, false)) found.push_back(graph.node(n).results.front());
  return found;
}

Result<void> checkRuleOff(const std::string& pattern, const Graph& graph) {
  if (!nodesWithOperator(pattern, graph).empty()) return {};
  return fail(ErrorCode::BadUsage,
              "No operator of this model is called `{}`, so no rule can be switched off by that name.{}", pattern,
              didYouMean(pattern, {graph.ops.begin(), graph.ops.end()}));
}

Result<void> checkRedistribution(const std::string& pattern, const Graph& graph) {
  if (!redistributableValues(pattern, graph).empty()) return {};
  std::vector<std::string> names;
  for (const auto& value : graph.values) {
    const bool isComputed = graph.node(value.producer).kind == graph::NodeKind::Call;
    if (isComputed) names.push_back(value.name);
    if (isComputed || !matches(pattern, value.name)) continue;
    return fail(ErrorCode::BadUsage,
                "`{}` is not computed but given (an input, a parameter or a constant), so it cannot be redistributed. "
                "Name a computed value or a layer.",
                value.name);
  }
  for (std::string& layer : layerNames(graph)) names.push_back(std::move(layer));
  return fail(ErrorCode::BadUsage, "Nothing in this model is called `{}`, so it cannot be redistributed.{}", pattern,
              didYouMean(pattern, names));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  // Greedy with one point of return: linear in the name for each star, no recursion.
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<Pin> Pin::parse(std::string_view text) {
  constexpr std::string_view kForms =
      "write NAME=S(1) or NAME=R for a value, LAYER=column for a layer, == for that form alone, != to forbid, * for any characters";
  const std::string whole(trimmed(text));
  const auto equals = whole.find('=');
  if (equals == std::string::npos) return fail(ErrorCode::BadUsage, "The pin `{}` has no `=`: {}.", whole, kForms);
  Pin pin;
  pin.text = whole;
  pin.forbids = equals > 0 && whole[equals - 1] == '!';
  pin.pattern = trimmed(std::string_view(whole).substr(0, equals - (pin.forbids ? 1 : 0)));
  const bool isExact = whole.substr(equals + 1).starts_with('=');
  const std::string_view wanted = trimmed(std::string_view(whole).substr(equals + (isExact ? 2 : 1)));
  if (pin.pattern.empty())
    return fail(ErrorCode::BadUsage, "The pin `{}` names nothing before the `=`: {}.", whole, kForms);
  if (wanted.empty()) return fail(ErrorCode::BadUsage, "The pin `{}` has nothing after the `=`: {}.", whole, kForms);
  const auto alone = isExact ? rules::parseStrategy(wanted) : std::nullopt;
  pin.strategies = alone ? std::vector{*alone} : strategiesNamed(wanted);
  if (!pin.strategies.empty()) return pin;
  pin.placement = Placement::parse(wanted);
  if (pin.placement) return pin;
  return fail(ErrorCode::BadUsage,
              "The pin `{}` wants `{}`, which is neither a placement (R, S(0), S(1), ...) nor a strategy ({}).", whole,
              wanted, strategyWords());
}

std::string_view Pin::wanted() const {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return text;
  return trimmed(std::string_view(text).substr(std::min(text.find_first_not_of('=', equals), text.size())));
}

bool Pin::admits(const Placement& lies, int ranks) const {
  if (!forbids) return lies == *placement;
  return lies != *placement && !(placement->isReplicated() && lies.isWholeOn(ranks));
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
  for (const std::string& op : graph.ops) isMatch.push_back(matches(pattern, op));
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
