#include "cli/commands.h"
#include "cli/console.h"
#include "cli/plan_flags.h"
#include "cli/summary.h"

namespace cleave::cli {
namespace {

struct PlanCommand {
  PlanFlags flags;
  std::string json, trace;

  Result<int> run() const {
    const Progress progress = consoleProgress();
    CLEAVE_TRY(const Planned planned, planModel(flags, !trace.empty(), progress));
    endProgress();
    if (!trace.empty()) CLEAVE_TRY_VOID(solve::saveTrace(*planned.solved->trace, trace, progress));
    if (!planned.plan) {
      if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, noSolutionJson(*planned.solved, planned.model->info) + "\n"));
      return report(planned.planError);
    }
    if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, plan::toJson(*planned.plan) + "\n"));
    if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", planSummary(*planned.plan)));
    for (const std::string& warning : planned.plan->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    return 0;
  }
};

}  // namespace

void addPlanCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<PlanCommand>();
  CLI::App* command = app.add_subcommand("plan", "Solve the parallel axis of every tensor and print the plan");
  state->flags.addTo(*command);
  command->add_option("--json", state->json, "Write the plan as JSON to a file, or - for stdout");
  command->add_option("--trace", state->trace, "Save the recorded search to a file");
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
