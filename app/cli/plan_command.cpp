#include "base/option_types.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/foreign_command.h"
#include "cli/planning.h"
#include "cli/summary.h"
#include "cli/what_if.h"
#include "pipeline/what_fits.h"

namespace cleave::cli {
namespace {

struct PlanCommand {
  PlanFlags flags;
  std::string json, trace;
  std::optional<std::string> compare;
  std::optional<std::string> worldSizes, foreign;
  const CLI::Option* ranks = nullptr;
  bool preflight = false, pareto = false;
  std::size_t best = 0;

  Result<int> run() {
    if (trace == "-")
      return fail(ErrorCode::BadUsage, "--trace writes a file, and not to stdout: give the file a name.");
    const Progress progress = consoleProgress();
    CLEAVE_TRY_VOID(bringModel(flags.model, hub::Wanted::Config, progress));
    CLEAVE_TRY_VOID(refuseOverwriting({{"--trace", trace}, {"--json", json}}, flags.filesRead()));
    if (foreign) return showForeignPlan(flags, ranks->count() > 0, *foreign, json, progress);
    if (compare) return comparePlans(flags, *compare, json, progress);
    if (worldSizes) return showWorldSizes(flags, *worldSizes, json, progress);
    if (preflight) return showPreflight(flags, json, progress);
    if (pareto) return showFront(flags, json, progress);
    if (best > 0) return showBest(flags, best, json, progress);
    return plan(progress);
  }

 private:
  Result<int> plan(const Progress& progress) const {
    CLEAVE_TRY(const Planned planned, planModel(flags, !trace.empty(), progress));
    endProgress();
    if (!trace.empty()) CLEAVE_TRY_VOID(solve::saveTrace(*planned.solved->trace, trace, progress));
    if (!planned.plan) {
      if (!json.empty())
        CLEAVE_TRY_VOID(writeOutput(json, noSolutionJson(*planned.solved, planned.model->info) + "\n"));
      const int exit = report(planned.planError);
      if (pipeline::isOverBudget(planned.solved->result)) CLEAVE_TRY_VOID(tellWhatFits(planned, progress));
      return exit;
    }
    if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, plan::toSealedJson(*planned.plan) + "\n"));
    if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", planSummary(*planned.plan)));
    std::vector<std::string> warnings = planned.plan->warnings;
    CLEAVE_TRY_VOID(addIgnoredKeys(*planned.model, warnings));
    warn(warnings);
    if (!pipeline::exceedsAskedBudget(*planned.plan)) return 0;
    // What was asked for is a plan within the budget; that it is none stands in the first warning.
    CLEAVE_TRY_VOID(tellWhatFits(planned, progress));
    return exitCode(ErrorCode::Negative);
  }

  static Result<void> tellWhatFits(const Planned& planned, const Progress& progress) {
    CLEAVE_TRY(const auto fits, pipeline::whatFits(*planned.model, *planned.solved, progress));
    endProgress();
    std::fputs(terminalText(pipeline::toText(fits)).c_str(), stderr);
    return {};
  }
};

}  // namespace

void addPlanCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<PlanCommand>();
  CLI::App* command = app.add_subcommand("plan", "Solve the parallel axis of every tensor and print the plan");
  state->flags.addTo(*command);
  state->ranks = command->get_option("--ranks");
  command->add_option("--json", state->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  CLI::Option* trace = command->add_option("--trace", state->trace, "Save the recorded search to a file")
                           ->type_name(option_types::kFile);
  std::vector<CLI::Option*> questions;
  questions.push_back(command->add_option("--compare", state->compare,
                                          "Compare plans instead: engines or plan files, such as reference,optimal"));
  questions.push_back(command
                          ->add_option("--tp-plan", state->foreign,
                                       "Plan instead as a plan of transformers or PyTorch has it (JSON; own: that "
                                       "of config.json), check it, and compare")
                          ->type_name("own|.json"));
  questions.push_back(command
                          ->add_option("--world-sizes", state->worldSizes,
                                       "Say instead which world sizes work and why not the others (default 1-64)")
                          ->expected(0, 1));
  questions.push_back(
      command->add_flag("--preflight", state->preflight, "Say instead what is known before any search"));
  questions.push_back(command->add_flag(
      "--pareto", state->pareto, "List instead the plans of optimal that no other beats in both time and memory"));
  questions.push_back(
      command
          ->add_option(
              "--best", state->best,
              "List instead the plan of optimal and the next best, K in all, that differ in a layer's strategy or "
              "in what is redistributed")
          ->check(CLI::Range(1, 1000)));
  for (CLI::Option* question : questions) {
    question->excludes(trace);  // none of them records one search
    for (CLI::Option* other : questions) {
      if (question != other) question->excludes(other);
    }
  }
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
