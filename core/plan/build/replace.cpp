#include "plan/build/gradient_sums.h"
#include "plan/build/lowering.h"
#include "plan/build/plan_request.h"
#include "plan/build/steps.h"

#include <algorithm>

namespace cleave::plan {
namespace {

std::vector<CollectivePlan> listCollectives(const Lowered& lowered, const Graph& aten) {
  const Graph& program = lowered.program;
  std::vector<CollectivePlan> list;
  for (NodeId id : idRange<NodeId>(program.nodes.size())) {
    for (const program::Collective& collective : program::collectivesOf(program, id)) {
      const ValueId of = lowered.completes[id.index()];
      const std::string& name = of.isValid() ? aten.value(of).name : program.value(program.node(id).results[0]).name;
      list.push_back({name, collective.kind, collective.bytes, id});
    }
  }
  return list;
}

/// A program for training ends at the loss.
std::vector<graph::Output> outputsOfTraining(const Graph& aten, const graph::Gradients& gradients) {
  std::vector<graph::Output> outputs = aten.outputs;
  std::erase_if(outputs, [&](const graph::Output& output) { return !gradients.isOutput[output.value.index()]; });
  return outputs;
}

Result<Lowered> lowerForTraining(const PlanRequest& request) {
  const Graph& aten = *request.problem->graph;
  const graph::Gradients gradients = graph::findGradients(aten);
  const int ranks = request.problem->context.worldSize;
  CLEAVE_TRY(Lowered inference, lower(request, outputsOfTraining(aten, gradients)));
  if (ranks == 1) return inference;
  return addGradientSums(inference, {aten, *request.solution, ranks, gradients});
}

}  // namespace

Result<Replaced> replace(const PlanRequest& request) {
  const Graph& aten = *request.problem->graph;
  CLEAVE_TRY(Lowered lowered,
             request.problem->cost.isTraining ? lowerForTraining(request) : lower(request, aten.outputs));
  Replaced replaced;
  replaced.collectives = listCollectives(lowered, aten);
  replaced.program = std::make_shared<const Graph>(std::move(lowered.program));
  replaced.valueOf = std::move(lowered.valueOf);
  return replaced;
}

}  // namespace cleave::plan
