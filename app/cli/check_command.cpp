#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"

#include "pipeline/check_plan.h"

namespace cleave::cli {
namespace {

Result<int> checkFile(const std::string& file) {
  const Progress progress = consoleProgress();
  CLEAVE_TRY(const auto plan, readPlanFile(file));
  CLEAVE_TRY(const auto findings, pipeline::checkPlan(*plan, progress));
  endProgress();
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  if (findings.empty()) {
    text = fmt::format("{} holds: {} values, {} layers, {} parameters and the rank program agree with {}.\n", file, plan->graph->values.size(),
                       plan->layers.size(), plan->parameters.size(), plan->model.source);
  }
  CLEAVE_TRY_VOID(writeOutput("-", text));
  return findings.empty() ? 0 : exitCode(ErrorCode::Negative);
}

}  // namespace

void addCheckCommand(CLI::App& app, Chosen& chosen) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("check", "Hold a plan file against the model it was made from");
  command->add_option("PLAN", *file, "Plan written by plan --json")->required();
  command->callback([file, &chosen] {
    const auto result = checkFile(*file);
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
