#include "plan/build/diff.h"
#include "plan/build/plan_request.h"

#include "base/json_writer.h"
#include "base/quantities.h"
#include "plan/build/steps.h"
#include "plan/text/block_names.h"
#include "plan/text/shares_text.h"
#include "solve/problem/strategy_text.h"

#include <algorithm>

namespace cleave::plan {
namespace {

constexpr std::string_view kSchema = "cleave.diff/1";

std::string labelOf(const Plan& plan) {
  std::string label = fmt::format("{}, {}", solve::toText(plan.spec.engine), counted(plan.spec.ranks, "rank"));
  for (const std::string& demand : spec::demandTexts(plan.spec)) label += ", " + demand;
  return label;
}

template <class... Arguments>
tl::unexpected<Error> differentGraphs(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fail(ErrorCode::BadUsage,
              "These plans cannot be compared: {} Compare plans of one model, captured with the same options.",
              fmt::format(text, std::forward<Arguments>(arguments)...));
}

Result<void> sameValues(const Graph& before, const Graph& after) {
  const std::size_t count = std::min(before.values.size(), after.values.size());
  for (ValueId id : idRange<ValueId>(count)) {
    const graph::Value& a = before.value(id);
    const graph::Value& b = after.value(id);
    if (a.name != b.name)
      return differentGraphs("the first has the value {}, the second has {} in its place.", a.name, b.name);
    if (a.type != b.type)
      return differentGraphs("{} is {} in the first and {} in the second.", a.name, toText(a.type), toText(b.type));
    const std::string& opA = before.opName(before.node(a.producer));
    const std::string& opB = after.opName(after.node(b.producer));
    if (opA != opB)
      return differentGraphs("{} comes from {} in the first and from {} in the second.", a.name, opA, opB);
  }
  if (before.values.size() != after.values.size()) {
    return differentGraphs("the first has {}, the second {}.", counted(std::ssize(before.values), "value"),
                           after.values.size());
  }
  return {};
}

Result<void> sameGraphs(const Plan& before, const Plan& after) {
  if (before.graph == after.graph) return {};
  if (before.model.architecture != after.model.architecture) {
    return differentGraphs("the first is for {}, the second for {}.", before.model.architecture,
                           after.model.architecture);
  }
  CLEAVE_TRY_VOID(sameValues(*before.graph, *after.graph));
  const Graph& a = *before.graph;
  const Graph& b = *after.graph;
  if (a.nodes.size() != b.nodes.size())
    return differentGraphs("the first has {}, the second {}.", counted(std::ssize(a.nodes), "node"), b.nodes.size());
  for (NodeId id : idRange<NodeId>(a.nodes.size())) {
    if (a.node(id).args == b.node(id).args) continue;
    const auto& results = a.node(id).results;
    return differentGraphs("{} has different arguments in the second.",
                           results.empty() ? a.opName(a.node(id)) : a.value(results[0]).name);
  }
  return {};
}

/// A layer with a copy of its weight on every rank counts as replicated.
rules::Strategy effectiveStrategy(const solve::Solution& solution, int ranks, NodeId layer) {
  const auto& option = solution.strategies[layer.index()];
  return option ? solve::effectiveStrategy(*option, ranks) : rules::Strategy::Replicated;
}

/// A split with as many replicas as ranks counts as replicated.
Placement placementIn(const Plan& plan, ValueId value) {
  const Placement& placement = plan.solution->of(value);
  return plan.spec.ranks > 1 && placement.isSplit() && placement.isReplicatedOn(plan.spec.ranks) ? Placement()
                                                                                                 : placement;
}

void compareLayers(PlanDiff& diff, const Plan& before, const Plan& after) {
  for (std::size_t i = 0; i < std::min(before.layers.size(), after.layers.size()); ++i) {
    const LayerPlan& a = before.layers[i];
    const LayerPlan& b = after.layers[i];
    const rules::Strategy was = effectiveStrategy(*before.solution, before.spec.ranks, a.node),
                          is = effectiveStrategy(*after.solution, after.spec.ranks, b.node);
    if (was != is) diff.layers.push_back({a.name, a.node, was, is, a.reason, b.reason});
  }
}

void compareValues(PlanDiff& diff, const Plan& before, const Plan& after) {
  for (ValueId id : idRange<ValueId>(before.graph->values.size())) {
    const Placement a = placementIn(before, id), b = placementIn(after, id);
    if (a != b) diff.values.push_back({before.graph->value(id).name, id, a, b});
  }
}

Result<std::map<rules::CollectiveKind, Traffic>> trafficOf(const std::shared_ptr<const solve::Problem>& problem,
                                                           const solve::Solution& solution) {
  PlanRequest request;
  request.problem = problem;
  request.solution = std::make_shared<const solve::Solution>(solution);
  CLEAVE_TRY(const Replaced replaced, replace(request));
  return trafficByKind(replaced.collectives);
}

// ---- text

std::string countChange(std::int64_t change) { return change == 0 ? "the same" : fmt::format("{:+}", change); }

std::string bytesChange(std::int64_t change) {
  return change == 0 ? "the same" : (change > 0 ? "+" : "") + bytesText(change);
}

std::string timeChange(Femtoseconds change) {
  return change == 0 ? "the same" : (change > 0 ? "+" : "") + solve::timeText(change);
}

/// Equal changes of repeated blocks.
struct LayerGroup {
  std::string pattern;
  const LayerChange* first = nullptr;
  std::vector<int> indices;
};

std::vector<LayerGroup> grouped(const std::vector<LayerChange>& layers) {
  std::vector<LayerGroup> groups;
  for (const LayerChange& layer : layers) {
    const auto [pattern, index] = foldIndex(layer.name);
    auto known = std::find_if(groups.begin(), groups.end(), [&, &name = pattern](const LayerGroup& group) {
      return group.pattern == name && group.first->before == layer.before && group.first->after == layer.after;
    });
    if (known == groups.end()) known = groups.insert(groups.end(), {pattern, &layer, {}});
    known->indices.push_back(index);
  }
  return groups;
}

std::string figureLine(std::string_view name, const std::string& before, const std::string& after,
                       const std::string& change) {
  return fmt::format("  {:<22} {:>16}  {:>16}  {}\n", name, before, after, change);
}

std::string bytesLine(std::string_view name, const Figure& figure) {
  return figureLine(name, bytesText(figure.before), bytesText(figure.after), bytesChange(figure.change()));
}

template <class AnyFigure>
void writeFigure(JsonWriter& json, std::string_view name, const AnyFigure& figure) {
  json.key(name).beginObject();
  json.key("before").value(figure.before);
  json.key("after").value(figure.after);
  json.endObject();
}

void writeShare(JsonWriter& json, std::string_view name, const std::pair<double, double>& share) {
  json.key(name).beginObject();
  json.key("before").real(share.first);
  json.key("after").real(share.second);
  json.endObject();
}

}  // namespace

Result<PlanDiff> diff(const Plan& before, const Plan& after) {
  CLEAVE_TRY_VOID(sameGraphs(before, after));
  PlanDiff diff;
  diff.ranksBefore = before.spec.ranks;
  diff.ranksAfter = after.spec.ranks;
  diff.labelBefore = labelOf(before);
  diff.labelAfter = labelOf(after);
  compareLayers(diff, before, after);
  compareValues(diff, before, after);
  const auto count = [](std::size_t layers) { return static_cast<std::int64_t>(layers); };
  diff.splitLayers = {count(before.shares.layers.split), count(after.shares.layers.split)};
  diff.layerCount = {count(before.shares.layers.layers), count(after.shares.layers.layers)};
  diff.splitFlops = {before.shares.flopsShare(), after.shares.flopsShare()};
  diff.splitWeights = {before.shares.weightShare(), after.shares.weightShare()};
  diff.femtoseconds = {before.cost.femtoseconds(), after.cost.femtoseconds()};
  diff.rankBytes = {before.cost.bytes(), after.cost.bytes()};
  const auto partsBefore = solve::memoryParts(before.cost), partsAfter = solve::memoryParts(after.cost);
  for (std::size_t i = 0; i < diff.memoryParts.size(); ++i)
    diff.memoryParts[i] = {partsBefore[i].bytes, partsAfter[i].bytes};
  for (const auto& [kind, traffic] : trafficByKind(before.collectives)) diff.collectives[kind].first = traffic;
  for (const auto& [kind, traffic] : trafficByKind(after.collectives)) diff.collectives[kind].second = traffic;
  return diff;
}

Result<SolutionDiff> diff(const std::shared_ptr<const solve::Problem>& problem, const solve::Solution& before,
                          const solve::Solution& after) {
  SolutionDiff diff;
  const Graph& graph = *problem->graph;
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (!graph::layerShape(graph, node)) continue;
    const rules::Strategy was = effectiveStrategy(before, problem->context.worldSize, node),
                          is = effectiveStrategy(after, problem->context.worldSize, node);
    if (was != is) diff.layers.push_back({graph::layerName(graph, node), node, was, is, {}, {}});
  }
  CLEAVE_TRY(const auto trafficBefore, trafficOf(problem, before));
  CLEAVE_TRY(const auto trafficAfter, trafficOf(problem, after));
  for (const auto& [kind, traffic] : trafficBefore) diff.collectives[kind].first = traffic;
  for (const auto& [kind, traffic] : trafficAfter) diff.collectives[kind].second = traffic;
  return diff;
}

std::vector<std::string> layerLines(const std::vector<LayerChange>& layers) {
  std::vector<std::string> lines;
  for (const LayerGroup& group : grouped(layers)) {
    const std::size_t count = group.indices.size();
    lines.push_back(fmt::format("{}: {} becomes {}{}",
                                count == 1 ? group.first->name : foldedName(group.pattern, group.indices),
                                rules::toText(group.first->before), rules::toText(group.first->after),
                                count == 1 ? "" : fmt::format(" ({} layers)", count)));
  }
  return lines;
}

std::string toText(const PlanDiff& diff) {
  std::string text = fmt::format("before: {}\nafter:  {}\n", diff.labelBefore, diff.labelAfter);
  text += figureLine("", "before", "after", "change");
  text += figureLine("predicted step", solve::timeText(diff.femtoseconds.before),
                     solve::timeText(diff.femtoseconds.after), timeChange(diff.femtoseconds.change()));
  text += bytesLine("memory per rank", diff.rankBytes);
  const auto names = solve::memoryParts({});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Figure& figure = diff.memoryParts[i];
    if (figure.before != 0 || figure.after != 0) text += bytesLine(fmt::format("- {}", names[i].name), figure);
  }
  text += figureLine("split layers", fmt::format("{} of {}", diff.splitLayers.before, diff.layerCount.before),
                     fmt::format("{} of {}", diff.splitLayers.after, diff.layerCount.after),
                     countChange(diff.splitLayers.change()));
  text += figureLine("split FLOPs", percentText(diff.splitFlops.first), percentText(diff.splitFlops.second), "");
  text += figureLine("split weights", percentText(diff.splitWeights.first), percentText(diff.splitWeights.second), "");
  for (const auto& [kind, traffic] : diff.collectives) {
    const auto& [before, after] = traffic;
    const auto tensors = [](const auto& side) { return fmt::format("{} x ({})", side.count, bytesText(side.bytes)); };
    text += figureLine(rules::toText(kind), tensors(before), tensors(after), bytesChange(after.bytes - before.bytes));
  }
  for (const std::string& line : layerLines(diff.layers)) text += line + "\n";
  if (diff.values.empty())
    return text + (diff.layers.empty() ? "All strategies and placements are equal.\n" : "All placements are equal.\n");
  if (diff.layers.empty()) text += "All strategies are equal. ";
  return text + counted(std::ssize(diff.values), "placement differs", "placements differ") + ".\n";
}

std::string toJson(const PlanDiff& diff) {
  JsonWriter json;
  json.beginObject();
  json.key("schema").value(kSchema);
  json.key("ranks").beginObject();
  json.key("before").value(std::int64_t{diff.ranksBefore});
  json.key("after").value(std::int64_t{diff.ranksAfter});
  json.endObject();
  json.key("labels").beginObject();
  json.key("before").value(diff.labelBefore);
  json.key("after").value(diff.labelAfter);
  json.endObject();
  writeFigure(json, "step_fs", diff.femtoseconds);
  writeFigure(json, "rank_bytes", diff.rankBytes);
  json.key("memory").beginObject();
  const auto keys = solve::memoryParts({});
  for (std::size_t i = 0; i < keys.size(); ++i) writeFigure(json, keys[i].key, diff.memoryParts[i]);
  json.endObject();
  writeFigure(json, "split_layers", diff.splitLayers);
  writeFigure(json, "layer_count", diff.layerCount);
  writeShare(json, "flops_share", diff.splitFlops);
  writeShare(json, "weight_share", diff.splitWeights);
  json.key("collectives").beginObject();
  for (const auto& [kind, traffic] : diff.collectives) {
    json.key(rules::toText(kind)).beginObject();
    writeFigure(json, "count", Figure{traffic.first.count, traffic.second.count});
    writeFigure(json, "bytes", Figure{traffic.first.bytes, traffic.second.bytes});
    json.endObject();
  }
  json.endObject();
  json.key("layers").beginArray();
  for (const LayerChange& layer : diff.layers) {
    json.beginObject();
    json.key("name").value(layer.name);
    json.key("before").value(rules::toText(layer.before));
    json.key("after").value(rules::toText(layer.after));
    json.key("reason_before").value(layer.reasonBefore);
    json.key("reason_after").value(layer.reasonAfter);
    json.endObject();
  }
  json.endArray();
  json.key("values").beginArray();
  for (const ValueChange& value : diff.values) {
    json.beginObject();
    json.key("name").value(value.name);
    json.key("before").value(value.before.text());
    json.key("after").value(value.after.text());
    json.endObject();
  }
  json.endArray();
  json.endObject();
  return std::move(json).take();
}

}  // namespace cleave::plan
