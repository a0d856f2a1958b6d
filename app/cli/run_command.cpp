#include "cli/bisecting.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/pass_outcome.h"
#include "cli/run_checks.h"
#include "cli/run_documents.h"
#include "cli/run_flags.h"
#include "cli/shapes_run.h"
#include "pipeline/run/run.h"
#include "pipeline/source/source_files.h"

namespace cleave::cli {
namespace {

/// Prints the commands that start the ranks on other machines, and starts nothing.
Result<int> printCommands(RunFlags& flags, const Progress& progress) {
  CLEAVE_TRY(const RunSource::Made made, flags.source.make(progress));
  const pipeline::RunRequest request = flags.request(made.plan);
  CLEAVE_TRY(const std::string commands,
             flags.cluster.commands(request, flags.source.settings.model, nullptr, progress));
  endProgress();
  CLEAVE_TRY_VOID(writeOutput("-", commands));
  return 0;
}

Result<int> bisect(RunFlags& flags, const Progress& progress) {
  CLEAVE_TRY(RunSource::Made made, flags.source.make(progress));
  CLEAVE_TRY_VOID(flags.checkOutputs(pipeline::sourceFilesOf(made.plan->model)));
  const pipeline::RunRequest request = flags.request(made.plan);
  CLEAVE_TRY_VOID(checkModelFiles(request));
  CLEAVE_TRY_VOID(checkMemoryFits(request, progress));
  warn(made.warnings);
  pipeline::BisectRequest asked{.plan = made.plan,
                                .backend = request.backend,
                                .skipWeights = request.skipWeights,
                                .initMissing = request.initMissing};
  asked.input = request.input;
  asked.tolerance = flags.tolerance();
  if (request.against) {
    CLEAVE_TRY(asked.against, readUnalteredPlan(*request.against));
  }
  return runBisection(asked, flags.json, progress);
}

/// One plan on its ranks: a forward pass, training, or generation.
Result<int> runPass(RunFlags& flags, const Progress& progress) {
  CLEAVE_TRY(RunDocuments documents, RunDocuments::open(flags.json, flags.timeline, progress.stopToken()));
  CLEAVE_TRY(RunSource::Made made, flags.source.make(progress));
  const plan::Plan& plan = *made.plan;
  CLEAVE_TRY_VOID(flags.checkOutputs(pipeline::sourceFilesOf(plan.model)));
  pipeline::RunRequest request = flags.request(made.plan);
  if (flags.source.prompt) CLEAVE_TRY_VOID(flags.source.prompt->complete(request, progress));
  std::optional<launch::Listener> listener;
  CLEAVE_TRY_VOID(flags.cluster.listenWith(listener, request, progress));
  CLEAVE_TRY_VOID(checkModelFiles(request));
  CLEAVE_TRY_VOID(checkMemoryFits(request, progress));
  warn(made.warnings);
  if (listener)
    CLEAVE_TRY_VOID(flags.cluster.printInstructions(request, flags.source.settings.model, *listener, progress));
  CLEAVE_TRY(auto report, pipeline::runPlan(request, rankObserver(progress), progress));
  endProgress();
  report.warnings = std::move(made.warnings);
  report.spec.input = flags.spec.input;  // the ranks read a prompt from a temporary file
  CLEAVE_TRY_VOID(documents.writeTimeline(report.timeline, plan));
  const PassOutcome outcome = outcomeOf(report, plan);
  CLEAVE_TRY_VOID(documents.writeReport(outcome.report + "\n"));
  const auto printed = documents.print(outcome.summary);
  if (outcome.failure) return tl::unexpected(*outcome.failure);
  CLEAVE_TRY_VOID(printed);
  return outcome.exitCode();
}

Result<int> run(RunFlags& flags) {
  const Progress progress = consoleProgress();
  CLEAVE_TRY_VOID(flags.check(progress));
  if (flags.spec.mode() == RunMode::Generate) {
    CLEAVE_TRY(flags.source.prompt, Prompt::read(flags.spec));
  }
  if (flags.cluster.onlyPrints()) return printCommands(flags, progress);
  switch (flags.spec.mode()) {
    case RunMode::Bisect: return bisect(flags, progress);
    case RunMode::Shapes: return runShapes(flags, progress);
    case RunMode::Forward:
    case RunMode::Train:
    case RunMode::Generate: break;
  }
  return runPass(flags, progress);
}

void addMode(CLI::App& app, Chosen& chosen, RunMode mode, const char* name, const char* description) {
  auto flags = std::make_shared<RunFlags>(mode);
  CLI::App* command = app.add_subcommand(name, description);
  flags->addTo(*command);
  command->callback([flags, &chosen] {
    const auto result = run(*flags);
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace

void addRunCommands(CLI::App& app, Chosen& chosen) {
  addMode(app, chosen, RunMode::Forward, "run", "Run a forward pass on local ranks and compare it with an unsplit run");
  addMode(app, chosen, RunMode::Train, "train",
          "Train on local ranks and compare losses and parameters with an unsplit run");
  addMode(app, chosen, RunMode::Generate, "generate", "Generate N tokens with greedy decoding and a sharded KV cache");
  addMode(app, chosen, RunMode::Bisect, "bisect",
          "Find the first value of a forward pass that differs from an unsplit run");
}

}  // namespace cleave::cli
