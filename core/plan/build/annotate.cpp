#include "graph/layers.h"
#include "graph/weights.h"
#include "plan/build/steps.h"
#include "plan/replication/choice_splits.h"
#include "plan/text/reason_text.h"
#include "solve/problem/strategy_text.h"

namespace cleave::plan {
namespace {

using rules::Strategy;

bool isSequenceParallel(Strategy strategy) {
  switch (strategy) {
    case Strategy::RowScatter:
    case Strategy::GatherColumn:
    case Strategy::GatherReplicated:
    case Strategy::ReplicatedOnSequence:
    case Strategy::VocabScatter: return true;
    case Strategy::Replicated:
    case Strategy::Column:
    case Strategy::ColumnGather:
    case Strategy::Row:
    case Strategy::Vocab:
    case Strategy::ByExpert:
    case Strategy::InExpert: return false;
  }
  return false;
}

}  // namespace

std::vector<LayerPlan> annotate(const PlanRequest& request, const Explanation& explanation) {
  const Graph& graph = *request.problem->graph;
  std::vector<LayerPlan> layers;
  std::vector<NodeId> nodes;
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (request.solution->strategies[node.index()]) nodes.push_back(node);
  }
  std::vector<solve::SmallestRegret> regrets(nodes.size());
  if (request.optimum) regrets = request.optimum->smallestRegrets(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = nodes[i];
    const auto& option = request.solution->strategies[node.index()];
    const auto shape = graph::layerShape(graph, node);
    CLEAVE_CHECK(shape.has_value(), "node {} has a strategy, but is not a layer", node.index());
    LayerPlan layer;
    layer.name = graph::layerName(graph, node);
    layer.kind = shape->kind;
    layer.strategy = option->strategy;
    layer.axis = rules::axisOf(solve::effectiveStrategy(*option, request.problem->context.worldSize));
    layer.gatherOutput = option->strategy == Strategy::ColumnGather;
    layer.inputIsParallel = option->strategy == Strategy::Row || option->strategy == Strategy::RowScatter;
    layer.sequenceParallel = isSequenceParallel(option->strategy);
    const graph::ValueId main = shape->weight.isValid() ? graph::mainParameter(graph, shape->weight) : graph::ValueId();
    if (main.isValid()) layer.weight = graph.value(main).name;
    layer.node = node;
    if (regrets[i].kind == solve::SmallestRegret::Kind::Costs) layer.regretFs = regrets[i].extra;
    layer.isRegretKnown = regrets[i].kind != solve::SmallestRegret::Kind::NotKnown;
    layer.isForcedByBudget = regrets[i].kind == solve::SmallestRegret::Kind::OverBudget;
    layer.replication = splitsWeight({.strategy = option}, request.problem->context.worldSize)
                            ? ReplicationReason(Split{})
                            : explanation.weight(node);
    layer.reason = layer.axis == "replicated" ? whyText(layer.replication) : option->reason;
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace cleave::plan
