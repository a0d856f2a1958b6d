#include "pipeline/plan_again.h"

#include "graph/reordered_sums.h"
#include "pipeline/solve.h"

#include "base/version.h"
#include "graph/states.h"
#include "plan/demands.h"

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

Result<SolveOptions> solveOptionsOf(const plan::Plan& plan) {
  solve::Problem demands;
  CLEAVE_TRY_VOID(plan::addDemands(plan.demands, demands));
  SolveOptions options;
  options.ranks = plan.ranks;
  options.engine = plan.engine;
  options.candidateSet = plan.candidateSet;
  options.sequenceParallel = plan.sequenceParallel;
  options.pins = std::move(demands.pins);
  options.rulesOff = std::move(demands.rulesOff);
  options.redistributable = std::move(demands.redistributable);
  options.cost = plan.costSettings;
  options.trainsWithDropout = plan.model.hasDropout;
  options.seed = plan.seed;
  options.record = false;
  return options;
}

/// "f32[256,64]" by name.
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
    if (at->second != type) return fmt::format("its `{}` is {}, the plan's {}", name, at->second, type);
  }
  for (const auto& [name, type] : found) {
    if (!wanted.contains(name)) return fmt::format("it has a `{}`, and the plan none", name);
  }
  return {};
}

/// The name of the first value that is made otherwise, of the texts of two graphs that differ.
std::string firstOtherValue(const std::string& planned, const std::string& now) {
  const auto [at, other] = std::mismatch(planned.begin(), planned.end(), now.begin(), now.end());
  const auto line = static_cast<std::size_t>(at - planned.begin());
  const std::size_t start = line == 0 ? 0 : planned.rfind('\n', line - 1) + 1;
  return planned.substr(start, planned.find_first_of(":\n", start) - start);
}

/// The first constant with other numbers; of graphs that are the same but for those.
std::string otherConstant(const graph::Graph& planned, const graph::Graph& now) {
  for (const auto node : idRange<graph::NodeId>(planned.nodes.size())) {
    const auto a = planned.constants.find(node.raw()), b = now.constants.find(node.raw());
    const bool isSame = a == planned.constants.end() || b == now.constants.end() || a->second == b->second;
    if (!isSame) return planned.value(planned.node(node).results.front()).name;
  }
  return {};
}

/// What of the demands speaks of something in a graph.
void keepOnlyKnown(SolveOptions& options, const graph::Graph& graph) {
  std::erase_if(options.pins, [&](const solve::Pin& pin) {
    const solve::PinTargets targets = solve::targetsOf(pin, graph);
    return targets.layers.empty() && targets.values.empty();
  });
  std::erase_if(options.rulesOff,
                [&](const std::string& pattern) { return solve::nodesWithOperator(pattern, graph).empty(); });
}

Result<void> pinTo(SolveOptions& options, const std::string& name, const rules::Placement& placement) {
  CLEAVE_TRY(solve::Pin pin, solve::Pin::parse(fmt::format("{}={}", name, placement.text())));
  options.pins.push_back(std::move(pin));
  return {};
}

std::string_view quantizationText(const plan::ModelInfo& info) {
  return info.quantization.empty() ? std::string_view("not quantized") : std::string_view(info.quantization);
}

}  // namespace

Result<std::shared_ptr<const Model>> openModelOf(const plan::ModelInfo& info, const Progress& progress) {
  auto model = openModel(info.source, captureOptionsOf(info), progress);
  if (!model && model.error().code == ErrorCode::BadUsage) {
    const std::string& why = model.error().message;
    return fail(ErrorCode::BadInput, "The plan's model cannot be captured: {}{}", why, why.ends_with('.') ? "" : ".");
  }
  return model;
}

namespace {

/// What both graphs say. Older plans lack what is frozen, which only training needs, and the names of tied parameters
/// that an archive has and its program does not use.
std::string textLike(graph::Graph graph, bool hasFrozen, bool hasTies) {
  if (!hasFrozen) graph.frozen.clear();
  if (!hasTies) graph.tiedNames.clear();
  return graph::toText(graph);
}

}  // namespace

std::optional<std::string> whatIsOther(const plan::Plan& plan, const Model& model) {
  const bool isFrozenAlike = plan.graph->frozen == model.aten->frozen;
  const bool isTiedAlike = plan.graph->tiedNames == model.aten->tiedNames || !model.info.isExported;
  const auto textOf = [&](const graph::Graph& graph) { return textLike(graph, isFrozenAlike, isTiedAlike); };
  const std::string planned = textOf(*plan.graph), now = textOf(*model.aten);
  if (!isFrozenAlike && plan.costSettings.isTraining)
    return fmt::format("training leaves {} of its parameters unchanged, and {} of the plan's",
                       model.aten->frozen.size(), plan.graph->frozen.size());
  if (planned == now) {
    if (plan.graph->packedBytes != model.aten->packedBytes)
      return fmt::format("its weights are stored in other bytes ({})", quantizationText(model.info));
    const std::string constant = otherConstant(*plan.graph, *model.aten);
    if (constant.empty()) return std::nullopt;
    return fmt::format("its constant `{}` holds other numbers, as after a change of its config.json", constant);
  }
  if (std::string parameter = otherParameter(*plan.graph, *model.aten); !parameter.empty()) return parameter;
  if (plan.madeBy != version()) return "";
  return fmt::format(
      "it computes something else with the same parameters, beginning with `{}`, as after a change of its "
      "config.json",
      firstOtherValue(planned, now));
}

std::string otherModelText(const plan::Plan& plan, const std::string& whatIsOther) {
  return fmt::format(
      "The model in {} is not the one that was planned: {}. Put the planned model back, or make a plan "
      "for this one.",
      plan.model.source, whatIsOther);
}

Result<std::shared_ptr<const Model>> openSameModel(const plan::Plan& plan, const Progress& progress) {
  CLEAVE_TRY(auto model, openModelOf(plan.model, progress));
  if (const auto other = whatIsOther(plan, *model); other && !other->empty())
    return fail(ErrorCode::BadInput, "{}", otherModelText(plan, *other));
  return model;
}

plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape) {
  info.batch = shape.batch;
  info.sequence = shape.sequence;
  info.hasMask = shape.hasMask;
  info.hasTokenTypes = shape.hasTokenTypes;
  info.hasLoss = info.hasLoss && shape.hasLabels;
  return info;
}

plan::ModelInfo withRowsOf(plan::ModelInfo info, int replicas) {
  info.batch *= replicas;
  return info;
}

std::string inputsInWords(const plan::ModelInfo& info) {
  if (info.isExported) {
    std::string words;
    for (const auto& [symbol, size] : info.sizes)
      words += fmt::format("{}{}={}", words.empty() ? "" : ", ", symbol, size);
    return words.empty() ? "the inputs that it was exported with" : words;
  }
  std::string words =
      fmt::format("batch {}, sequence {}, {}{}, {}", info.batch, info.sequence, info.hasMask ? "a mask" : "no mask",
                  info.hasTokenTypes ? ", token types" : "", info.hasLoss ? "a loss" : "no loss");
  if (info.cacheUse != graph::CacheUse::None) words += fmt::format(", a cache of {} positions", info.cachePositions);
  return words;
}

Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress) {
  CLEAVE_TRY(const auto options, solveOptionsOf(plan));
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const plan::ModelInfo& wanted,
                                                    const Progress& progress) {
  CLEAVE_TRY(const auto model, openModelOf(wanted, progress));
  return planAgain(plan, model, progress);
}

Result<std::shared_ptr<const plan::Plan>> planOnSameWeights(const plan::Plan& plan,
                                                            const std::shared_ptr<const Model>& model,
                                                            const Progress& progress) {
  CLEAVE_TRY(auto options, solveOptionsOf(plan));
  // Values are numbered by their graph: what is demanded of one of `plan`'s may be another one's name here.
  std::erase_if(options.pins, [](const solve::Pin& pin) { return pin.placement.has_value(); });
  options.redistributable.clear();
  if (model->info.cacheUse == graph::CacheUse::Reads) {
    // One position does not divide, nor do strategies that are on the sequence; the weights say the rest.
    options.sequenceParallel = rules::SequenceParallel::Off;
    options.pins.clear();
  }
  keepOnlyKnown(options, *model->aten);
  for (const plan::ParameterShards& parameter : plan.parameters)
    CLEAVE_TRY_VOID(pinTo(options, parameter.name, parameter.placement));
  std::map<std::string, graph::ValueId> given;
  for (const graph::State& state : graph::statesOf(*plan.graph)) given.emplace(state.name, state.present);
  for (const graph::State& state : graph::statesOf(*model->aten)) {
    const auto at = given.find(state.name);
    if (at == given.end() || !state.past.isValid()) continue;
    CLEAVE_TRY_VOID(pinTo(options, model->aten->value(state.past).name, plan.solution->of(at->second)));
  }
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

int reorderedParts(const plan::Plan& split, int again) { return std::max(2, split.ranks) + again; }

Result<std::shared_ptr<const plan::Plan>> reorderedPlan(const std::shared_ptr<const Model>& model,
                                                        const plan::Plan& split, const Progress& progress, int again) {
  auto reordered = std::make_shared<Model>(*model);
  const int parts = reorderedParts(split, again);
  reordered->aten = std::make_shared<const graph::Graph>(graph::withReorderedSums(*model->aten, parts));
  return unsplitPlan(reordered, split, progress);
}

Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const std::shared_ptr<const Model>& model,
                                                      const plan::Plan& split, const Progress& progress) {
  SolveOptions options;
  options.ranks = 1;
  options.seed = split.seed;
  options.record = false;
  options.cost.isTraining = split.costSettings.isTraining;
  options.cost.optimizer = split.costSettings.optimizer;
  options.cost.memoryBudget = program::kMaxSize;  // it runs here, on no device of a profile
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

}  // namespace cleave::pipeline
