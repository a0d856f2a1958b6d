#include "cli/foreign_command.h"

#include "base/quantities.h"
#include "cli/console.h"
#include "cli/summary.h"
#include "exchange/foreign_plan.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "plan/build/diff.h"
#include "plan/build/preflight.h"
#include "plan/file/plan_file.h"

namespace cleave::cli {
namespace {

using PlanPtr = std::shared_ptr<const plan::Plan>;

Result<PlanPtr> solvedAs(const std::shared_ptr<const pipeline::Model>& model, const spec::PlanSpec& spec,
                         const Progress& progress) {
  CLEAVE_TRY(const auto solved, pipeline::solveModel(model, spec, progress, {.records = false}));
  return pipeline::planModel(model, solved, progress);
}

Result<exchange::ForeignPlan> readForeign(const PlanSettings& asked, const std::string& file) {
  return file == "own" ? exchange::ownPlan(asked.model) : exchange::readForeignPlan(file);
}

/// The search reports pins; the user wrote a foreign plan instead.
Error whyNotPossible(const pipeline::Model& model, const spec::PlanSpec& spec, const exchange::ForeignPlan& foreign,
                     Error error) {
  if (error.code != ErrorCode::Negative) return error;
  error.message = fmt::format("{} splits layers in a way that does not work on {}. {}", foreign.where,
                              counted(spec.ranks, "rank"), error.message);
  const auto problem = pipeline::problemOf(model, spec);
  if (!problem) return error;
  for (const plan::IndivisibleHeads& heads : plan::preflight(**problem).heads)
    error.message += fmt::format(" `{}`: {}", heads.pattern, heads.text);
  return error;
}

/// A model's plan as it is demanded, and how many of its layers are named.
struct Demanded {
  PlanPtr plan;
  std::size_t namedLayers = 0, layers = 0;
};
Result<Demanded> planAsDemanded(const std::shared_ptr<const pipeline::Model>& model,
                                const exchange::ForeignPlan& foreign, spec::PlanSpec spec, const Progress& progress) {
  const exchange::ForeignDemands demands = exchange::demandsOf(foreign, *model->aten, model->info.modelType);
  if (!demands.problems.empty()) return fail(ErrorCode::Negative, "{}", exchange::problemsText(demands));
  spec.candidateSet = rules::CandidateSet::Full;  // another library knows more strategies than Optimum does
  spec.pins.insert(spec.pins.end(), demands.pins.begin(), demands.pins.end());
  spec.redistributable.insert(spec.redistributable.end(), demands.redistributable.begin(),
                              demands.redistributable.end());
  auto solved = solvedAs(model, spec, progress);
  if (!solved) return tl::unexpected(whyNotPossible(*model, spec, foreign, solved.error()));
  PlanPtr plan = *std::move(solved);
  warn(demands.notes);
  warn(exchange::differencesOf(*plan));
  return Demanded{std::move(plan), demands.namedLayers, demands.layers};
}

}  // namespace

Result<std::shared_ptr<const plan::Plan>> foreignPlan(PlanSettings asked, const std::string& file,
                                                      const Progress& progress) {
  CLEAVE_TRY(const exchange::ForeignPlan foreign, readForeign(asked, file));
  CLEAVE_TRY_VOID(asked.settle());
  CLEAVE_TRY(const auto model, pipeline::openModel(asked.model, asked.input, progress));
  CLEAVE_TRY(Demanded demanded, planAsDemanded(model, foreign, asked.plan, progress));
  return std::move(demanded.plan);
}

Result<int> showForeignPlan(PlanSettings asked, bool asksRanks, const std::string& file, const std::string& json,
                            const Progress& progress) {
  CLEAVE_TRY(const exchange::ForeignPlan foreign, readForeign(asked, file));
  if (file != "own") CLEAVE_TRY_VOID(refuseOverwriting({{"--json", json}}, {{"--tp-plan", file}}));
  if (foreign.ranks && !asksRanks) asked.plan.ranks = *foreign.ranks;
  CLEAVE_TRY_VOID(asked.settle());
  CLEAVE_TRY(const auto model, pipeline::openModel(asked.model, asked.input, progress));
  auto demanded = planAsDemanded(model, foreign, asked.plan, progress);
  endProgress();
  if (!demanded) return tl::unexpected(demanded.error());
  CLEAVE_TRY(const PlanPtr best, solvedAs(model, asked.plan, progress));
  CLEAVE_TRY(plan::PlanDiff diff, plan::diff(*demanded->plan, *best));
  diff.labelBefore = fmt::format("{}, {}", foreign.where, counted(asked.plan.ranks, "rank"));
  endProgress();
  if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, plan::toSealedJson(*demanded->plan) + "\n"));
  if (json == "-") return 0;
  std::string text = fmt::format("{} names {} of {} layers; the others are replicated.\n\n", foreign.where,
                                 demanded->namedLayers, demanded->layers);
  text += planSummary(*demanded->plan);
  text += fmt::format("\nCompared with the plan of {}:\n{}", solve::toText(asked.plan.engine), plan::toText(diff));
  CLEAVE_TRY_VOID(writeOutput("-", text));
  return 0;
}

}  // namespace cleave::cli
