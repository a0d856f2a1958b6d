#pragma once
/// Tiny models as graph text, and solutions for them. A solution comes from strategies by layer name, with the rules'
/// first claim for everything else, or from an engine with the user's demands.
#include "graph/layers.h"
#include "plan/build/layer_strategy_of.h"
#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"
#include "plan/plan.h"
#include "solve/checker.h"
#include "solve/engine.h"

#include <QTest>

#include <map>
#include <optional>
#include <string>

namespace cleave::plan::testing {

inline std::shared_ptr<const Graph> parsed(std::string_view text) {
  auto graph = graph::parseGraph(text);
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return std::make_shared<const Graph>(std::move(*graph));
}

/// Layer name → strategy. All other layers are replicated.
using Strategies = std::map<std::string, rules::Strategy>;

inline solve::Solution solutionFor(const Graph& graph, const rules::StrategyContext& context,
                                   const Strategies& wanted) {
  solve::Solution solution;
  solution.placements.resize(graph.values.size());
  solution.strategies.resize(graph.nodes.size());
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const graph::Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call) continue;
    if (const auto layer = graph::layerShape(graph, id)) {
      const std::string name = graph::layerName(graph, id);
      const auto entry = wanted.find(name);
      const auto strategy =
          entry == wanted.end() || context.worldSize == 1 ? rules::Strategy::Replicated : entry->second;
      const auto options = rules::layerStrategies(graph, id, *layer, context);
      for (const auto& option : options.offered) {
        if (option.strategy == strategy) solution.strategies[id.index()] = option;
      }
      const auto& option = solution.strategies[id.index()];
      if (!option) qFatal("%s cannot be %s", name.c_str(), std::string(rules::toText(strategy)).c_str());
      if (option->input != solution.of(layer->input)) {
        qFatal("%s as %s needs its input %s, but it is %s", name.c_str(), std::string(rules::toText(strategy)).c_str(),
               option->input.text().c_str(), solution.of(layer->input).text().c_str());
      }
      if (layer->weight.isValid()) solution.placements[layer->weight.index()] = option->weight;
      if (layer->bias.isValid()) solution.placements[layer->bias.index()] = option->bias;
      if (layer->down.isValid()) solution.placements[layer->down.index()] = *option->down;
      solution.placements[node.results[0].index()] = option->result;
      continue;
    }
    std::vector<Placement> operands;
    for (ValueId operand : graph::operandsOf(node)) operands.push_back(solution.of(operand));
    const auto verdict = rules::applyRule({graph, id, operands, context.worldSize});
    if (const auto* conflict = std::get_if<rules::Conflict>(&verdict)) qFatal("%s", conflict->reason.c_str());
    const auto& claim = std::get<std::vector<rules::Claim>>(verdict).front();
    for (std::size_t i = 0; i < node.results.size(); ++i)
      solution.placements[node.results[i].index()] = claim.results[i];
  }
  return solution;
}

inline PlanRequest requestFor(std::string_view text, rules::StrategyContext context, const Strategies& strategies) {
  PlanRequest request;
  const auto graph = parsed(text);
  request.problem = std::make_shared<const solve::Problem>(solve::Problem{graph, context, {}});
  request.solution = std::make_shared<const solve::Solution>(solutionFor(*graph, context, strategies));
  request.model.source = "models/tiny";
  return request;
}

struct Demands {
  std::vector<std::string> pins, rulesOff, redistributable;
};

/// The solution of engine `learning`; nullopt if there is no solution.
inline std::optional<PlanRequest> solutionUnder(std::string_view text, rules::StrategyContext context,
                                                const Demands& demands) {
  auto problem = std::make_shared<solve::Problem>(solve::Problem{parsed(text), context, {}});
  for (const std::string& pin : demands.pins) problem->pins.push_back(*solve::Pin::parse(pin));
  problem->rulesOff = demands.rulesOff;
  problem->redistributable = demands.redistributable;
  if (const auto ok = problem->checkPins(); !ok) qFatal("%s", ok.error().message.c_str());
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(*problem, solve::Engine::Learning, *sink);
  if (!result || !result->solution) return std::nullopt;
  PlanRequest request;
  request.problem = problem;
  request.solution = std::make_shared<const solve::Solution>(*result->solution);
  request.engine = solve::Engine::Learning;
  request.model.source = "models/tiny";
  return request;
}

inline PlanRequest solvedFor(std::string_view text, rules::StrategyContext context, const Demands& demands) {
  auto request = solutionUnder(text, context, demands);
  if (!request) qFatal("no solution");
  return *std::move(request);
}

inline Plan planned(const PlanRequest& request) {
  auto plan =
      makePlan(request, explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get()));
  if (!plan) qFatal("%s", plan.error().message.c_str());
  return std::move(*plan);
}

/// A program as text, without scopes and without origins.
inline std::string programText(const Graph& program) {
  std::string text = graph::toText(program);
  for (auto at = text.find(" #"); at != std::string::npos; at = text.find(" #", at))
    text.erase(at, text.find('\n', at) - at);
  while (text.starts_with("scope ")) text.erase(0, text.find('\n') + 1);
  return text;
}

/// The differences of a plan after writing and reading its file; empty if there are no differences.
inline std::string lostInAFile(const Plan& plan) {
  const std::string json = toJson(plan);
  const auto again = planFromJson(json);
  if (!again) return "the plan cannot be read back: " + again.error().message + "\n";
  std::string lost;
  if (programText(*again->program) != programText(*plan.program)) lost += "the program differs\n";
  if (again->solution->placements != plan.solution->placements ||
      again->solution->computedAs != plan.solution->computedAs)
    lost += "the solution differs\n";
  if (again->spec != plan.spec) lost += "the spec differs\n";
  if (!(again->cost == plan.cost)) lost += "the cost differs\n";
  if (toJson(*again) != json) lost += "the file differs\n";
  // The plan that was read must solve the problem that it describes.
  const solve::Problem problem = spec::problemOf(again->graph, again->spec);
  for (const std::string& violation : solve::check(problem, *again->solution)) lost += "violated: " + violation + "\n";
  return lost;
}

inline constexpr const char* kMlp = R"(
x: f32[1,4,8] = input
up.weight: f32[16,8] = parameter @up
up.bias: f32[16] = parameter @up
linear_0: f32[1,4,16] = aten::linear(x, up.weight, up.bias) @up
relu_0: f32[1,4,16] = aten::relu(linear_0)
down.weight: f32[8,16] = parameter @down
down.bias: f32[8] = parameter @down
linear_1: f32[1,4,8] = aten::linear(relu_0, down.weight, down.bias) @down
add_0: f32[1,4,8] = aten::add.Tensor(x, linear_1, 1)
return y=add_0
)";
inline const Strategies kMlpSplit{{"up", rules::Strategy::Column}, {"down", rules::Strategy::Row}};

/// One attention block with 4 query and 2 KV heads of size 2, without rotation; then head and loss, tied to the
/// embedding.
inline constexpr const char* kDecoder = R"(
tied embed.weight head.weight
ids: i64[1,4] = input
labels: i64[1,4] = input
embed.weight: f32[12,8] = parameter @embed
embedding_0: f32[1,4,8] = aten::embedding(embed.weight, ids, -1, false, false) @embed
norm.weight: f32[8] = parameter @norm
mul_0: f32[1,4,8] = aten::mul.Tensor(embedding_0, norm.weight) @norm
attn.q.weight: f32[8,8] = parameter @attn.q
linear_0: f32[1,4,8] = aten::linear(mul_0, attn.q.weight, None) @attn.q
attn.k.weight: f32[4,8] = parameter @attn.k
linear_1: f32[1,4,4] = aten::linear(mul_0, attn.k.weight, None) @attn.k
attn.v.weight: f32[4,8] = parameter @attn.v
linear_2: f32[1,4,4] = aten::linear(mul_0, attn.v.weight, None) @attn.v
view_0: f32[1,4,4,2] = aten::view(linear_0, [1,4,4,2]) @attn
permute_0: f32[1,4,4,2] = aten::permute(view_0, [0,2,1,3]) @attn
view_1: f32[1,4,2,2] = aten::view(linear_1, [1,4,2,2]) @attn
permute_1: f32[1,2,4,2] = aten::permute(view_1, [0,2,1,3]) @attn
view_2: f32[1,4,2,2] = aten::view(linear_2, [1,4,2,2]) @attn
permute_2: f32[1,2,4,2] = aten::permute(view_2, [0,2,1,3]) @attn
unsqueeze_0: f32[1,2,1,4,2] = aten::unsqueeze(permute_1, 2) @attn
expand_0: f32[1,2,2,4,2] = aten::expand(unsqueeze_0, [1,2,2,4,2], false) @attn
clone_0: f32[1,2,2,4,2] = aten::clone(expand_0, 0) @attn
view_3: f32[1,4,4,2] = aten::view(clone_0, [1,4,4,2]) @attn
unsqueeze_1: f32[1,2,1,4,2] = aten::unsqueeze(permute_2, 2) @attn
expand_1: f32[1,2,2,4,2] = aten::expand(unsqueeze_1, [1,2,2,4,2], false) @attn
clone_1: f32[1,2,2,4,2] = aten::clone(expand_1, 0) @attn
view_4: f32[1,4,4,2] = aten::view(clone_1, [1,4,4,2]) @attn
scaled_dot_product_attention_0: f32[1,4,4,2] = aten::scaled_dot_product_attention(permute_0, view_3,)"
                                        R"( view_4, None, 0.0, true) @attn
permute_3: f32[1,4,4,2] = aten::permute(scaled_dot_product_attention_0, [0,2,1,3]) @attn
clone_2: f32[1,4,4,2] = aten::clone(permute_3, 0) @attn
view_5: f32[1,4,8] = aten::view(clone_2, [1,4,8]) @attn
attn.o.weight: f32[8,8] = parameter @attn.o
linear_3: f32[1,4,8] = aten::linear(view_5, attn.o.weight, None) @attn.o
add_0: f32[1,4,8] = aten::add.Tensor(embedding_0, linear_3, 1)
linear_4: f32[1,4,12] = aten::linear(add_0, embed.weight, None) @head
view_6: f32[4,12] = aten::view(linear_4, [4,12])
view_7: i64[4] = aten::view(labels, [4])
cross_entropy_loss_0: f32[] = aten::cross_entropy_loss(view_6, view_7, None, 1, -100, 0.0)
return logits=linear_4, loss=cross_entropy_loss_0
)";
inline const Strategies kDecoderSplit{{"embed", rules::Strategy::Vocab},
                                      {"attn.q", rules::Strategy::Column},
                                      {"attn.k", rules::Strategy::Column},
                                      {"attn.v", rules::Strategy::Column},
                                      {"attn.o", rules::Strategy::Row},
                                      {"head", rules::Strategy::Column},
                                      {"cross_entropy_loss_0", rules::Strategy::Vocab}};
inline const Strategies kDecoderOnSequence{
    {"embed", rules::Strategy::VocabScatter},        {"attn.q", rules::Strategy::GatherColumn},
    {"attn.k", rules::Strategy::GatherColumn},       {"attn.v", rules::Strategy::GatherColumn},
    {"attn.o", rules::Strategy::RowScatter},         {"head", rules::Strategy::GatherColumn},
    {"cross_entropy_loss_0", rules::Strategy::Vocab}};

/// kDecoder with `size` tokens instead of 12.
inline std::string decoderWithVocabulary(int size) {
  std::string text = kDecoder;
  const std::string sizeText = std::to_string(size);
  for (const char* place : {"f32[12,8]", "f32[1,4,12]", "f32[4,12]", "[4,12])"}) {
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      text.replace(text.find("12", at), 2, sizeText);
    }
  }
  return text;
}

inline rules::StrategyContext context(int ranks, rules::SequenceParallel sequence = rules::SequenceParallel::Off,
                                      rules::CandidateSet candidateSet = rules::CandidateSet::Optimum) {
  return {ranks, candidateSet, sequence};
}

inline const LayerPlan& layerNamed(const Plan& plan, std::string_view name) {
  const auto at =
      std::find_if(plan.layers.begin(), plan.layers.end(), [&](const LayerPlan& layer) { return layer.name == name; });
  if (at == plan.layers.end()) qFatal("the plan has no layer %s", std::string(name).c_str());
  return *at;
}

}  // namespace cleave::plan::testing
