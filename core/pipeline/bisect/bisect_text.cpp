#include "base/json.h"
#include "base/quantities.h"
#include "graph/op_names.h"
#include "pipeline/bisect/bisect.h"

#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// "`mul_3` (mul in model.layers.0.mlp, placed S(2))"
std::string nameOf(const plan::Plan& plan, graph::ValueId id) {
  const graph::Value& value = plan.graph->value(id);
  const graph::Node& node = plan.graph->node(value.producer);
  const std::string& scope = plan.graph->scope(node.scope).path;
  const std::string what = node.kind == graph::NodeKind::Parameter ? "a parameter"
                           : node.kind == graph::NodeKind::Input   ? "an input"
                           : node.kind == graph::NodeKind::Constant
                               ? "a constant"
                               : std::string(graph::shortName(plan.graph->opName(node)));
  const bool saysWhere = node.kind == graph::NodeKind::Call && !scope.empty();
  return fmt::format("`{}` ({}{}, placed {})", value.name, what, saysWhere ? " in " + scope : "",
                     plan.solution->placements[id.index()].text());
}

std::string elementText(const ValueDifference& difference, int ranks) {
  const ElementDifference& element = *difference.largest;
  std::string text = fmt::format("{} of {} differ", difference.outside, counted(difference.elements, "element"));
  text += ranks > 1 ? fmt::format(", farthest on rank {}: ", element.rank) : ", farthest: ";
  if (!element.index.empty()) text += fmt::format("[{}] ", fmt::join(element.index, ", "));
  return text + fmt::format("is {:.6g}, not {:.6g} (rounding allows {:.3g})", element.actual, element.expected,
                            element.allowed);
}

std::string inputsText(const Bisection& found, const plan::Plan& plan) {
  std::vector<std::string> alike, other;
  for (const ValueDifference& input : found.inputs) {
    const std::string name = fmt::format("`{}`", plan.graph->value(input.value).name);
    if (input.outside == 0) {
      alike.push_back(name);
    } else {
      other.push_back(fmt::format("{}: {}", name, elementText(input, plan.spec.ranks)));
    }
  }
  std::string text;
  if (!alike.empty()) text += fmt::format("Its inputs agree: {}.\n", fmt::join(alike, ", "));
  for (const std::string& input : other) text += fmt::format("Its input {}.\n", input);
  return text;
}

nlohmann::ordered_json jsonOf(const ValueDifference& difference, const plan::Plan& plan) {
  const graph::Value& value = plan.graph->value(difference.value);
  const graph::Node& node = plan.graph->node(value.producer);
  nlohmann::ordered_json json{{"value", value.name},
                              {"op", node.kind == graph::NodeKind::Call ? plan.graph->opName(node) : ""},
                              {"scope", plan.graph->scope(node.scope).path},
                              {"placement", plan.solution->placements[difference.value.index()].text()},
                              {"elements", difference.elements},
                              {"outside", difference.outside},
                              {"largest", nullptr}};
  if (difference.largest) {
    json["largest"] = {{"index", difference.largest->index},
                       {"rank", difference.largest->rank},
                       {"actual", difference.largest->actual},
                       {"expected", difference.largest->expected},
                       {"allowed", difference.largest->allowed}};
  }
  return json;
}

}  // namespace

std::string bisectionText(const Bisection& found, const plan::Plan& plan) {
  const std::string counts = fmt::format(
      "{} compared with {}", counted(static_cast<std::int64_t>(found.compared), "value"), found.comparedWith);
  if (!found.first) {
    std::string text = fmt::format("No difference: {}. Each element agrees within rounding{}.\n", counts,
                                   found.firstNotANumber ? ", or is NaN in both" : "");
    if (!found.firstNotANumber) return text;
    const ValueDifference& first = *found.firstNotANumber;
    return text + fmt::format("First value with NaN: {}: {} of {}, first at [{}].\n", nameOf(plan, first.value),
                              first.outside, counted(first.elements, "element"), fmt::join(first.largest->index, ", "));
  }
  std::string text = fmt::format("First difference: {}: {}.\n", nameOf(plan, found.first->value),
                                 elementText(*found.first, plan.spec.ranks));
  text += inputsText(found, plan);
  return text + fmt::format("{}; {} by more than rounding.\n", counts,
                            counted(static_cast<std::int64_t>(found.apart), "differs", "differ"));
}

std::string toJson(const Bisection& found, const plan::Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema", "cleave.bisect/1"},
            {"agrees", !found.first.has_value()},
            {"compared_with", found.comparedWith},
            {"compared", found.compared},
            {"apart", found.apart},
            {"first", nullptr},
            {"first_not_a_number", nullptr},
            {"inputs", Json::array()},
            {"values", Json::array()}};
  if (found.first) json["first"] = jsonOf(*found.first, plan);
  if (found.firstNotANumber) json["first_not_a_number"] = jsonOf(*found.firstNotANumber, plan);
  for (const ValueDifference& input : found.inputs) json["inputs"].push_back(jsonOf(input, plan));
  for (const auto id : idRange<graph::ValueId>(found.errors.size())) {
    if (found.errors[id.index()] < 0) continue;
    json["values"].push_back({{"value", plan.graph->value(id).name}, {"error", found.errors[id.index()]}});
  }
  return jsonText(json, 1);
}

}  // namespace cleave::pipeline
