#include "base/quantities.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "settings/option_types.h"

#include "base/files.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/source/source.h"
#include "program/rank_program.h"
#include "solve/problem/wording.h"

namespace cleave::cli {
namespace {

std::string textOf(const pipeline::PlanCheck& check, const std::string& file) {
  std::string text;
  for (const std::string& finding : check.findings) text += finding + "\n";
  if (!check.findings.empty()) return text;
  const plan::Plan& plan = *check.plan;
  const auto layers = static_cast<std::int64_t>(plan.shares.layers.layers);  // as a plan counts them: with a weight
  const std::string parts = fmt::format(
      "{}, {}{}, {} and the rank program", counted(std::ssize(plan.graph->values), "value"), counted(layers, "layer"),
      std::ssize(plan.layers) > layers ? ", the loss" : "", counted(std::ssize(plan.parameters), "parameter"));
  if (!check.unchecked.empty()) {
    text = fmt::format("{}: {} follow from the plan's own graph, and every other field with them.\n", file, parts);
  } else {
    std::vector<std::string> others{"its timings"};
    if (check.lacksCertificate) others.emplace_back("the certificate, which the file lacks");
    if (!check.otherVersion.empty()) others.emplace_back("those listed below");
    text = fmt::format("{} is right: {} agree with {}. A new plan has the same fields, except {}.\n", file, parts,
                       plan.model.source, solve::joined(others, "and"));
  }
  for (const std::string& more : {check.proof, check.otherVersion}) {
    if (!more.empty()) text += more + "\n";
  }
  return text;
}

Result<int> checkFile(const std::string& file) {
  const Progress progress = consoleProgress();
  CLEAVE_TRY_VOID(pipeline::requireKind(pipeline::SourceKind::Plan, file));
  CLEAVE_TRY(const std::string planText, readTextFile(file, program::kPlanLimits.bytes));
  const auto check = pipeline::checkPlan(planText, progress);
  endProgress();
  if (!check && check.error().code == ErrorCode::BadInput)
    return fail(ErrorCode::BadInput, "{}: {}", file, check.error().message);
  if (!check) return tl::unexpected(check.error());
  CLEAVE_TRY_VOID(writeOutput("-", textOf(*check, file)));
  if (!check->findings.empty()) return exitCode(ErrorCode::Negative);
  if (!check->unchecked.empty()) return fail(ErrorCode::BadInput, "{}", check->unchecked);
  return 0;
}

}  // namespace

void addCheckCommand(CLI::App& app, Chosen& chosen) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("check", "Check a plan file against the model it was made from");
  command->add_option("PLAN", *file, "Plan written by plan --json")->type_name(option_types::kPlan)->required();
  command->callback([file, &chosen] {
    const auto result = checkFile(*file);
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
