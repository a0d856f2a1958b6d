#include "plan/build/make_plan.h"

#include "base/stopwatch.h"
#include "base/version.h"
#include "plan/build/measure_shares.h"
#include "plan/build/steps.h"
#include "plan/build/warnings.h"

namespace cleave::plan {
namespace {

Result<void> checkRequest(const PlanRequest& request) {
  const Graph& graph = *request.problem->graph;
  if (request.solution->placements.size() == graph.values.size() &&
      request.solution->strategies.size() == graph.nodes.size())
    return {};
  return fail(ErrorCode::BadInput,
              "The solution has {} placements and {} strategies, but the graph has {} values and {} nodes.",
              request.solution->placements.size(), request.solution->strategies.size(), graph.values.size(),
              graph.nodes.size());
}

/// By value: name of the first result of the captured operator during which it was recorded.
std::vector<std::string> originsOf(const Graph& graph, const Graph* captured) {
  std::vector<std::string> origins(graph.values.size());
  if (!captured) return origins;
  for (ValueId id : idRange<ValueId>(graph.values.size())) {
    const NodeId origin = graph.node(graph.value(id).producer).origin;
    if (!origin.isValid() || origin.index() >= captured->nodes.size()) continue;
    const auto& results = captured->node(origin).results;
    if (!results.empty()) origins[id.index()] = captured->value(results[0]).name;
  }
  return origins;
}

spec::PlanSpec specOf(const PlanRequest& request) {
  spec::PlanSpec spec = spec::specOf(*request.problem);
  spec.engine = request.engine;
  spec.dropout = request.model.input.dropout;
  spec.seed = request.seed;
  return spec;
}

}  // namespace

Result<Plan> makePlan(const PlanRequest& request, const Explanation& explanation, const Progress& progress) {
  CLEAVE_TRY_VOID(checkRequest(request));
  Plan plan;
  plan.madeBy = version();
  plan.model = request.model;
  plan.spec = specOf(request);
  plan.graph = request.problem->graph;
  plan.solution = request.solution;
  plan.search = request.search;
  plan.isProvedOptimal = request.optimum && request.optimum->isProved();
  if (request.optimum) {
    plan.lowerBoundFs = request.optimum->lowerBoundFs();
    if (auto certificate = request.optimum->certificate(progress))
      plan.certificate = std::make_shared<const solve::Certificate>(*std::move(certificate));
    plan.fastest = {request.optimum->fastest().femtoseconds(), request.optimum->fastest().bytes()};
  }
  plan.cost = request.optimum ? request.optimum->cost() : solve::costOf(*request.problem, *request.solution);
  plan.origins = originsOf(*plan.graph, request.captured.get());
  if (progress.cancelled()) return progress.cancelledError("making the plan");

  const Stopwatch annotating;
  plan.layers = annotate(request, explanation);
  plan.shares = sharesOf(*request.problem, *request.solution, explanation);
  plan.timings.annotateMs = annotating.milliseconds();

  const Stopwatch replacing;
  CLEAVE_TRY(Replaced replaced, replace(request));
  plan.program = std::move(replaced.program);
  plan.programValueOf = std::move(replaced.valueOf);
  plan.collectives = std::move(replaced.collectives);
  CLEAVE_TRY(plan.parameters, shardMap(request, plan.warnings));
  if (plan.spec.cost.isTraining && plan.spec.cost.checkpointsActivations)
    plan.checkpointed = graph::checkpointableBlocks(*plan.graph, graph::findGradients(*plan.graph));
  if (plan.spec.cost.isTraining && graph::findGradients(*plan.program).loss.isValid()) {
    CLEAVE_TRY(program::Backward backward,
               program::backwardOf(*plan.program, plan.parameters, plan.spec.ranks, plan.checkpointed));
    plan.backward = std::make_shared<const program::Backward>(std::move(backward));
  }
  plan.memory = predictMemory(*plan.program, plan.parameters, *plan.graph);
  plan.timings.replaceMs = replacing.milliseconds();

  for (std::string& warning : warningsFor(plan)) plan.warnings.push_back(std::move(warning));
  return plan;
}

}  // namespace cleave::plan
