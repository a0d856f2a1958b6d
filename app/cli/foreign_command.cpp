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

Result<PlanPtr> solvedAs(const std::shared_ptr<const pipeline::Model>& model, pipeline::SolveOptions options,
                         const Progress& progress) {
  options.record = false;
  CLEAVE_TRY(const auto solved, pipeline::solveModel(model, options, progress));
  return pipeline::planModel(model, solved, progress);
}

Result<exchange::ForeignPlan> readForeign(const PlanFlags& flags, const std::string& file) {
  return file == "own" ? exchange::ownPlan(flags.model) : exchange::readForeignPlan(file);
}

/// The search reports pins; the user wrote a foreign plan instead.
Error whyNotPossible(const pipeline::Model& model, const pipeline::SolveOptions& options,
                     const exchange::ForeignPlan& foreign, Error error) {
  if (error.code != ErrorCode::Negative) return error;
  error.message = fmt::format("{} splits layers in a way that does not work on {}. {}", foreign.where,
                              counted(options.ranks, "rank"), error.message);
  const auto problem = pipeline::problemOf(model, options);
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
                                const exchange::ForeignPlan& foreign, pipeline::SolveOptions options,
                                const Progress& progress) {
  const exchange::ForeignDemands demands = exchange::demandsOf(foreign, *model->aten, model->info.modelType);
  if (!demands.problems.empty()) return fail(ErrorCode::Negative, "{}", exchange::problemsText(demands));
  options.candidateSet = rules::CandidateSet::Full;  // another library knows more strategies than Optimum does
  options.pins.insert(options.pins.end(), demands.pins.begin(), demands.pins.end());
  options.redistributable.insert(options.redistributable.end(), demands.redistributable.begin(),
                                 demands.redistributable.end());
  auto solved = solvedAs(model, options, progress);
  if (!solved) return tl::unexpected(whyNotPossible(*model, options, foreign, solved.error()));
  PlanPtr plan = *std::move(solved);
  warn(demands.notes);
  warn(exchange::differencesOf(*plan));
  return Demanded{std::move(plan), demands.namedLayers, demands.layers};
}

}  // namespace

Result<std::shared_ptr<const plan::Plan>> foreignPlan(const PlanFlags& flags, const std::string& file,
                                                      const Progress& progress) {
  CLEAVE_TRY(const exchange::ForeignPlan foreign, readForeign(flags, file));
  CLEAVE_TRY(const auto captureOptions, flags.captureOptions());
  CLEAVE_TRY(const pipeline::SolveOptions options, flags.solveOptions());
  CLEAVE_TRY(const auto model, pipeline::openModel(flags.model, captureOptions, progress));
  CLEAVE_TRY(Demanded demanded, planAsDemanded(model, foreign, options, progress));
  return std::move(demanded.plan);
}

Result<int> showForeignPlan(PlanFlags flags, bool asksRanks, const std::string& file, const std::string& json,
                            const Progress& progress) {
  CLEAVE_TRY(const exchange::ForeignPlan foreign, readForeign(flags, file));
  if (file != "own") CLEAVE_TRY_VOID(refuseOverwriting({{"--json", json}}, {{"--tp-plan", file}}));
  if (foreign.ranks && !asksRanks) flags.ranks = *foreign.ranks;
  CLEAVE_TRY(const auto captureOptions, flags.captureOptions());
  CLEAVE_TRY(const pipeline::SolveOptions options, flags.solveOptions());
  CLEAVE_TRY(const auto model, pipeline::openModel(flags.model, captureOptions, progress));
  auto demanded = planAsDemanded(model, foreign, options, progress);
  endProgress();
  if (!demanded) return tl::unexpected(demanded.error());
  CLEAVE_TRY(const PlanPtr best, solvedAs(model, options, progress));
  CLEAVE_TRY(plan::PlanDiff diff, plan::diff(*demanded->plan, *best));
  diff.labelBefore = fmt::format("{}, {}", foreign.where, counted(options.ranks, "rank"));
  endProgress();
  if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, plan::toSealedJson(*demanded->plan) + "\n"));
  if (json == "-") return 0;
  std::string text = fmt::format("{} names {} of {} layers; the others are replicated.\n\n", foreign.where,
                                 demanded->namedLayers, demanded->layers);
  text += planSummary(*demanded->plan);
  text += fmt::format("\nCompared with the plan of {}:\n{}", solve::toText(options.engine), plan::toText(diff));
  CLEAVE_TRY_VOID(writeOutput("-", text));
  return 0;
}

}  // namespace cleave::cli
