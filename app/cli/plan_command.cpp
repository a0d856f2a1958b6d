#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/foreign_command.h"
#include "cli/planning.h"
#include "cli/summary.h"
#include "cli/what_if.h"
#include "options/old_flags.h"
#include "pipeline/solve/over_budget.h"
#include "pipeline/solve/what_fits.h"
#include "plan/file/plan_file.h"
#include "settings/option_types.h"

namespace cleave::cli {
namespace {

/// Questions that were flags of `plan`; each has a command now.
struct OldQuestions {
  std::optional<std::string> worldSizes;
  std::optional<std::vector<std::string>> sides;
  std::size_t best = 0;
  bool asksPreflight = false, asksFront = false;
  options::OldFlags flags;

  void addTo(CLI::App& command) {
    flags.add(command.add_option("--compare", sides, "compare")->delimiter(','), "compare MODEL SIDES");
    flags.add(command.add_option("--world-sizes", worldSizes, "world-sizes")->expected(0, 1), "world-sizes MODEL");
    flags.add(command.add_flag("--preflight", asksPreflight, "preflight"), "preflight MODEL");
    flags.add(command.add_flag("--pareto", asksFront, "pareto"), "pareto MODEL");
    flags.add(command.add_option("--best", best, "best")->check(CLI::Range(std::size_t{1}, kMostBestPlans)),
              "best MODEL --count K");
    for (const auto& [question, instead] : flags.all()) {
      for (const auto& [other, otherInstead] : flags.all()) {
        if (question != other) question->excludes(other);
      }
    }
  }

  /// BadUsage if a question is given with one of these options. CLI11's own exclusions would appear in the help.
  Result<void> checkAlone(std::initializer_list<const CLI::Option*> others) const {
    for (const auto& [question, instead] : flags.all()) {
      for (const CLI::Option* other : others) {
        if (question->count() > 0 && other->count() > 0)
          return fail(ErrorCode::BadUsage, "{} excludes {}.", other->get_name(), question->get_name());
      }
    }
    return {};
  }

  /// nullopt if no question was given.
  std::optional<Result<int>> answer(const PlanSettings& of, const std::string& json, const Progress& progress) const {
    flags.hint("plan");
    if (sides) return comparePlans(of, *sides, json, progress);
    if (worldSizes) return showWorldSizes(of, *worldSizes, json, progress);
    if (asksPreflight) return showPreflight(of, json, progress);
    if (asksFront) return showFront(of, json, progress);
    if (best > 0) return showBest(of, best, json, progress);
    return std::nullopt;
  }
};

struct PlanCommand {
  PlanFlags flags;
  std::string json, trace;
  std::optional<std::string> foreign;
  OldQuestions questions;
  const CLI::Option *traceFlag = nullptr, *foreignFlag = nullptr;

  Result<int> run() {
    if (trace == "-") return fail(ErrorCode::BadUsage, "--trace cannot write to stdout: name a file.");
    CLEAVE_TRY_VOID(questions.checkAlone({traceFlag, foreignFlag}));
    const Progress progress = consoleProgress();
    CLEAVE_TRY(PlanSettings asked, flags.read());
    flags.hint(asked);
    CLEAVE_TRY_VOID(resolveModel(asked.model, hub::Wanted::Config, progress));
    CLEAVE_TRY_VOID(refuseOverwriting({{"--trace", trace}, {"--json", json}}, asked.filesRead()));
    if (foreign) return showForeignPlan(asked, flags.isGiven("ranks"), *foreign, json, progress);
    if (const auto answered = questions.answer(asked, json, progress)) return *answered;
    return plan(asked, progress);
  }

 private:
  Result<int> plan(const PlanSettings& asked, const Progress& progress) const {
    CLEAVE_TRY(const Planned planned, planModel(asked, !trace.empty(), progress));
    endProgress();
    if (!trace.empty()) CLEAVE_TRY_VOID(solve::saveTrace(*planned.solved->trace, trace, progress));
    if (!planned.plan) {
      if (!json.empty())
        CLEAVE_TRY_VOID(writeOutput(json, noSolutionJson(*planned.solved, planned.model->info) + "\n"));
      const int exit = report(planned.planError);
      if (pipeline::isOverBudget(planned.solved->result)) CLEAVE_TRY_VOID(printWhatFits(planned, progress));
      return exit;
    }
    if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, plan::toSealedJson(*planned.plan) + "\n"));
    if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", planSummary(*planned.plan)));
    std::vector<std::string> warnings = planned.plan->warnings;
    CLEAVE_TRY_VOID(addIgnoredKeys(*planned.model, warnings));
    warn(warnings);
    if (!pipeline::exceedsAskedBudget(*planned.plan)) return 0;
    // The plan is over the budget that was asked for; its first warning says so.
    CLEAVE_TRY_VOID(printWhatFits(planned, progress));
    return exitCode(ErrorCode::Negative);
  }

  static Result<void> printWhatFits(const Planned& planned, const Progress& progress) {
    CLEAVE_TRY(const auto fits, pipeline::whatFits(*planned.model, *planned.solved, progress));
    endProgress();
    std::fputs(terminalText(pipeline::toText(fits)).c_str(), stderr);
    return {};
  }
};

}  // namespace

void addPlanCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<PlanCommand>();
  CLI::App* command = app.add_subcommand("plan", "Find the parallel axis of every tensor and print the plan");
  state->flags.addTo(*command);
  command->add_option("--json", state->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  CLI::Option* trace = command->add_option("--trace", state->trace, "Save the recorded search to a file")
                           ->type_name(option_types::kFile);
  command
      ->add_option("--tp-plan", state->foreign,
                   "Plan as a plan of transformers or PyTorch does (JSON; own: the one in config.json), check it, and "
                   "compare")
      ->type_name("own|.json")
      ->excludes(trace);
  state->questions.addTo(*command);
  state->traceFlag = trace;
  state->foreignFlag = command->get_option("--tp-plan");
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
