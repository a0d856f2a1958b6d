#include "pipeline/plan_again.h"

#include "pipeline/solve.h"

#include "plan/demands.h"

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
  options.seed = plan.seed;
  options.record = false;
  return options;
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

plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape) {
  info.batch = shape.batch;
  info.sequence = shape.sequence;
  info.hasMask = shape.hasMask;
  info.hasLoss = info.hasLoss && shape.hasLabels;
  return info;
}

std::string inputsInWords(const plan::ModelInfo& info) {
  return fmt::format("batch {}, sequence {}, {}, {}", info.batch, info.sequence, info.hasMask ? "a mask" : "no mask",
                     info.hasLoss ? "a loss" : "no loss");
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

}  // namespace cleave::pipeline
