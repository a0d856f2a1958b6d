#include "pipeline/solve/solve.h"

#include "base/quantities.h"
#include "base/stopwatch.h"
#include "pipeline/solve/over_budget.h"
#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"
#include "solve/explain/explain.h"

namespace cleave::pipeline {
namespace {

std::string triesText(const solve::SolveResult& result) {
  return counted(static_cast<std::int64_t>(result.stats.tries), "try", "tries");
}

/// The constraints that conflict; without a core, the most frequent conflicts of the search.
std::string causesInWords(const solve::SolveResult& result) {
  if (!result.core.constraints.empty()) {
    std::string text = ":";
    if (result.core.constraints.size() > 1) {
      text += result.core.isIrreducible ? " these constraints conflict, and each one is needed for the conflict."
                                        : " these constraints conflict, but perhaps not all are needed for that.";
    }
    for (const solve::Constraint& constraint : result.core.constraints) text += "\n  " + constraint.text;
    if (const std::string bytes = overBudgetText(result); !bytes.empty()) text += "\n  " + bytes;
    return text;
  }
  std::string text = fmt::format(" with these demands: every try ended in a conflict ({}).", triesText(result));
  const std::size_t shown = std::min<std::size_t>(result.causes.size(), 3);
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + result.causes[i].reason;
  return text;
}

}  // namespace

Result<std::shared_ptr<const solve::Problem>> problemOf(const Model& model, const spec::PlanSpec& spec) {
  if (spec.ranks < 1 || spec.ranks > spec::kMaxRanks)
    return fail(ErrorCode::BadUsage, "{} ranks are not possible. Use 1 to {} ranks.", spec.ranks, spec::kMaxRanks);
  auto problem = std::make_shared<const solve::Problem>(spec::problemOf(model.aten, spec));
  CLEAVE_TRY_VOID(problem->checkPins());
  return problem;
}

Result<std::shared_ptr<const Solved>> solveModel(const std::shared_ptr<const Model>& model, const spec::PlanSpec& spec,
                                                 const Progress& progress, const SolveContext& context) {
  progress.report("solve");
  CLEAVE_TRY(const auto problem, problemOf(*model, spec));
  auto solved = std::make_shared<Solved>();
  solved->problem = problem;
  solved->spec = spec;
  const Stopwatch watch;
  if (context.records) {
    solve::TraceRecorder recorder(problem, context.limits);
    solved->trace = recorder.trace();
    if (context.onTrace) context.onTrace(solved->trace);
    CLEAVE_TRY(solved->result, solve::solve(*problem, spec.engine, recorder, progress, context.cache.get()));
    solved->whyStopped = recorder.whyStopped();
  } else {
    const auto sink = solve::makeCountingSink();
    CLEAVE_TRY(solved->result, solve::solve(*problem, spec.engine, *sink, progress, context.cache.get()));
  }
  solved->solveMs = watch.milliseconds();
  if (solved->result.outcome == solve::Outcome::NoSolution) {
    // If this stops early, the result keeps the engine's larger set of constraints.
    auto core = solve::irreducibleCore(*problem, spec.engine, progress);
    if (core && core->outcome == solve::CoreOutcome::HasCore) solved->result.core = std::move(core->core);
  }
  return std::shared_ptr<const Solved>(std::move(solved));
}

Result<void> needSolution(const Solved& solved) {
  if (!solved.whyStopped.empty()) {
    return fail(ErrorCode::Environment,
                "The search ended after {}, before it found a solution. {} Solve without a recording, or with the "
                "engine learning.",
                triesText(solved.result), solved.whyStopped);
  }
  if (solved.result.outcome == solve::Outcome::Stopped) {
    const bool isReference = solved.spec.engine == solve::Engine::Reference;
    return fail(ErrorCode::Cancelled, "The search was stopped after {}, before it found a solution.{}",
                triesText(solved.result),
                isReference ? " The engines learning and optimal do not repeat failed tries." : "");
  }
  if (!solved.result.solution) {
    return fail(ErrorCode::Negative, "{} for {}{}", solve::noSolutionText(solved.result),
                counted(solved.problem->context.worldSize, "rank"), causesInWords(solved.result));
  }
  return {};
}

Result<std::shared_ptr<const plan::Plan>> planModel(const std::shared_ptr<const Model>& model,
                                                    const std::shared_ptr<const Solved>& solved,
                                                    const Progress& progress) {
  CLEAVE_TRY_VOID(needSolution(*solved));
  plan::PlanRequest request;
  request.model = model->info;
  request.problem = solved->problem;
  request.captured = model->captured;
  request.solution = std::make_shared<const solve::Solution>(*solved->result.solution);
  request.engine = solved->result.engine;
  request.search = solved->result.stats;
  request.checkpoint = model->folder.tensors;
  request.seed = solved->spec.seed;
  request.optimum = solved->result.optimum;
  const Stopwatch explaining;
  const plan::Explanation why =
      plan::explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get(), progress);
  const double explainMs = explaining.milliseconds();
  if (progress.cancelled()) return progress.cancelledError("finding the reasons for replicated layers");
  CLEAVE_TRY(auto plan, plan::makePlan(request, why, progress));
  plan.timings.loadMs = model->timings.loadMs;
  plan.timings.captureMs = model->timings.captureMs;
  plan.timings.decomposeMs = model->timings.decomposeMs;
  plan.timings.solveMs = solved->solveMs;
  plan.timings.annotateMs += explainMs;
  return std::make_shared<const plan::Plan>(std::move(plan));
}

}  // namespace cleave::pipeline
