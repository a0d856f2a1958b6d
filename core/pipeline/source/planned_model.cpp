#include "pipeline/source/planned_model.h"

#include "base/version.h"
#include "pipeline/source/open.h"

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

/// Types such as "f32[256,64]", by name.
std::map<std::string, std::string> parametersOf(const graph::Graph& graph) {
  std::map<std::string, std::string> types;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    const graph::Value& value = graph.value(node.results.front());
    types.emplace(value.name, graph::toText(value.type));
  }
  return types;
}

std::string otherParameter(const graph::Graph& planned, const graph::Graph& now) {
  const auto wanted = parametersOf(planned), found = parametersOf(now);
  for (const auto& [name, type] : wanted) {
    const auto at = found.find(name);
    if (at == found.end()) return fmt::format("it has no `{}`", name);
    if (at->second != type) return fmt::format("its `{}` is {}, but {} in the plan", name, at->second, type);
  }
  for (const auto& [name, type] : found) {
    if (!wanted.contains(name)) return fmt::format("it has `{}`, which the plan lacks", name);
  }
  return {};
}

/// The name of the first value that differs, from the texts of two graphs.
std::string firstOtherValue(const std::string& planned, const std::string& now) {
  const auto [at, other] = std::mismatch(planned.begin(), planned.end(), now.begin(), now.end());
  const auto line = static_cast<std::size_t>(at - planned.begin());
  const std::size_t start = line == 0 ? 0 : planned.rfind('\n', line - 1) + 1;
  return planned.substr(start, planned.find_first_of(":\n", start) - start);
}

/// The name of the first constant with other numbers, in two graphs that differ in constants only.
std::string otherConstant(const graph::Graph& planned, const graph::Graph& now) {
  for (const auto node : idRange<graph::NodeId>(planned.nodes.size())) {
    const auto a = planned.constants.find(node.raw()), b = now.constants.find(node.raw());
    const bool isSame = a == planned.constants.end() || b == now.constants.end() || a->second == b->second;
    if (!isSame) return planned.value(planned.node(node).results.front()).name;
  }
  return {};
}

std::string_view quantizationText(const plan::ModelInfo& info) {
  return info.quantization.empty() ? std::string_view("not quantized") : std::string_view(info.quantization);
}

/// The text of a graph without fields that older plans lack: frozen parameters, which only training needs, and tied
/// names that an archive has but its program does not use.
std::string textLike(graph::Graph graph, bool hasFrozen, bool hasTies) {
  if (!hasFrozen) graph.frozen.clear();
  if (!hasTies) graph.tiedNames.clear();
  return graph::toText(graph);
}

}  // namespace

Result<std::shared_ptr<const Model>> openModelOf(const plan::ModelInfo& info, const Progress& progress) {
  auto model = openModel(info.source, info.input, progress);
  if (!model && model.error().code == ErrorCode::BadUsage) {
    const std::string& why = model.error().message;
    return fail(ErrorCode::BadInput, "The plan's model cannot be captured: {}{}", why, why.ends_with('.') ? "" : ".");
  }
  return model;
}

std::optional<std::string> modelDifference(const plan::Plan& plan, const Model& model) {
  const bool isFrozenAlike = plan.graph->frozen == model.aten->frozen;
  const bool isTiedAlike = plan.graph->tiedNames == model.aten->tiedNames || !model.info.isExported;
  const auto textOf = [&](const graph::Graph& graph) { return textLike(graph, isFrozenAlike, isTiedAlike); };
  const std::string planned = textOf(*plan.graph), now = textOf(*model.aten);
  if (!isFrozenAlike && plan.spec.cost.isTraining)
    return fmt::format("{} of its parameters are frozen, but {} in the plan", model.aten->frozen.size(),
                       plan.graph->frozen.size());
  if (planned == now) {
    if (plan.graph->packedBytes != model.aten->packedBytes)
      return fmt::format("its weights have another storage format ({})", quantizationText(model.info));
    const std::string constant = otherConstant(*plan.graph, *model.aten);
    if (constant.empty()) return std::nullopt;
    return fmt::format("its constant `{}` has other values, for example after a change of its config.json", constant);
  }
  if (std::string parameter = otherParameter(*plan.graph, *model.aten); !parameter.empty()) return parameter;
  if (plan.madeBy != version()) return "";
  return fmt::format(
      "its operators differ from `{}` on, with the same parameters, for example after a change of its config.json",
      firstOtherValue(planned, now));
}

std::string modelDifferenceText(const plan::Plan& plan, const std::string& modelDifference) {
  return fmt::format(
      "The model in {} is not the planned one: {}. Restore the planned model, or make a plan for this one.",
      plan.model.source, modelDifference);
}

Result<std::shared_ptr<const Model>> openSameModel(const plan::Plan& plan, const Progress& progress) {
  CLEAVE_TRY(auto model, openModelOf(plan.model, progress));
  if (const auto other = modelDifference(plan, *model); other && !other->empty())
    return fail(ErrorCode::BadInput, "{}", modelDifferenceText(plan, *other));
  return model;
}

plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape) {
  info.setShape(shape.batch, shape.sequence);
  info.input.mask = shape.hasMask;
  info.input.tokenTypes = shape.hasTokenTypes;
  info.input.loss = info.input.loss && shape.hasLabels;
  return info;
}

plan::ModelInfo withRowsOf(plan::ModelInfo info, int replicas) {
  info.setShape(info.batch * replicas, info.sequence);
  return info;
}

std::string inputsInWords(const plan::ModelInfo& info) {
  if (info.isExported) {
    std::string words;
    for (const auto& [symbol, size] : info.input.sizes)
      words += fmt::format("{}{}={}", words.empty() ? "" : ", ", symbol, size);
    return words.empty() ? "the inputs that it was exported with" : words;
  }
  std::string words =
      fmt::format("batch {}, sequence {}, {}{}, {}", info.batch, info.sequence, info.input.mask ? "a mask" : "no mask",
                  info.input.tokenTypes ? ", token types" : "", info.hasLoss() ? "a loss" : "no loss");
  if (info.input.cacheUse != graph::CacheUse::None)
    words += fmt::format(", a cache of {} positions", info.input.cachePositions);
  return words;
}

}  // namespace cleave::pipeline
