#include "base/option_types.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "cli/bisecting.h"
#include "cli/cluster_flags.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/run_source.h"
#include "cli/shapes.h"
#include "cli/summary.h"
#include "pipeline/compare.h"
#include "pipeline/folder_check.h"
#include "pipeline/plan_again.h"
#include "pipeline/run_shapes.h"
#include "pipeline/source.h"
#include "pipeline/unsplit_place.h"

#include <charconv>
#include <cmath>
#include <set>

namespace cleave::cli {
namespace {

/// An infinite tolerance would pass anything, and none is below 0.
CLI::Validator finiteTolerance() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool isGood =
            error == std::errc() && stop == text.data() + text.size() && std::isfinite(value) && value >= 0;
        return isGood ? "" : "a tolerance is a finite number from 0 on, not " + text;
      },
      "NUMBER");
}

struct RunCommand {
  RunSource source;
  std::vector<const CLI::Option*> trainingFlags;
  ClusterFlags cluster;
  std::string backend = "auto", output, json, shapes, timeline, against;
  std::optional<double> rtol, atol;
  program::Training training;
  std::optional<double> clipNorm;
  std::optional<OutputFile> reportFile;    ///< of --json FILE
  std::optional<OutputFile> timelineFile;  ///< of --timeline FILE
  std::set<std::string> said;              ///< warnings
  double silence = std::chrono::duration<double>(launch::kSilence).count();
  std::optional<int> collectiveTimeout;
  bool bisects = false, padsToPlanned = false;
  bool skipWeights = false, initMissing = false, noCheck = false, ignoreMemory = false;

  /// What the shapes of one model share is said once.
  void warnOfNew(const std::vector<std::string>& warnings) {
    std::vector<std::string> unsaid;
    for (const std::string& warning : warnings) {
      if (said.insert(warning).second) unsaid.push_back(warning);
    }
    warn(unsaid);
  }

  Result<pipeline::RunRequest> request(std::shared_ptr<const plan::Plan> plan) const {
    pipeline::RunRequest request;
    const auto parsed = launch::parseBackend(backend);
    if (!parsed) return fail(ErrorCode::BadUsage, "--backend is \"{}\": write auto, gloo or nccl.", backend);
    request.backend = *parsed;
    if (!source.input.empty()) request.input = source.input;
    if (!source.expect.empty()) request.expect = source.expect;
    CLEAVE_TRY(const std::string inputs, source.inputFile());
    request.expectHasInputs = !inputs.empty();
    if (!output.empty()) request.output = output;
    request.rtol = rtol;
    request.atol = atol;
    request.skipWeights = skipWeights;
    request.initMissing = initMissing;
    request.compareUnsplit = !noCheck;
    request.ignoreMemory = ignoreMemory;
    request.silence = std::chrono::milliseconds(std::llround(silence * 1000));
    if (collectiveTimeout) request.collectiveTimeout = std::chrono::seconds(*collectiveTimeout);
    request.training = training;
    request.training.optimizer = plan->costSettings.optimizer;
    request.replicas = source.mesh.dp;
    request.plan = std::move(plan);
    return request;
  }

  /// The same checks stand in runPlan; here they can name the flags.
  static Result<void> checkIsThere(const pipeline::RunRequest& request) {
    const pipeline::FolderCheck folder = pipeline::checkFolder(request);
    if (folder.holds()) return {};
    if (folder.isQuantized) return fail(ErrorCode::BadInput, "{}", folder.text);
    if (folder.isIncomplete) {
      return fail(ErrorCode::BadInput,
                  "{} Complete them{}, or fill what is missing from the seed with --init-missing, or all parameters "
                  "with --skip-weights.",
                  folder.text, request.plan->model.isExported ? " with --weights" : " or correct config.json");
    }
    if (!folder.isGone)
      return fail(ErrorCode::BadInput, "{} Fill all parameters from the seed with --skip-weights.", folder.text);
    return fail(ErrorCode::BadInput, "{} Put it back, or run without it:{}{}.", folder.text,
                folder.lacksWeights ? " --skip-weights" : "", folder.lacksModel ? " --no-check" : "");
  }

  static Result<void> checkRanksFit(const pipeline::RunRequest& request, launch::Backend backend) {
    const auto memory = pipeline::checkMemory(*request.plan, backend, request.workload());
    if (memory.fits()) return {};
    return fail(ErrorCode::Environment,
                "{} Free memory, ask for less with --batch, --seq or --dtype, or start the ranks all the same with "
                "--ignore-memory.",
                memory.text);
  }

  static Result<void> checkFits(const pipeline::RunRequest& request, const Progress& progress) {
    if (request.ignoreMemory) return {};
    CLEAVE_TRY(const launch::BackendChoice choice, pipeline::backendFor(request, progress));
    if (!request.attended) CLEAVE_TRY_VOID(checkRanksFit(request, choice.backend));
    const auto place = pipeline::unsplitPlace(*request.plan, request.workload(), choice.backend);
    if (!request.comparesUnsplit() || place.backend != launch::Backend::Gloo) return {};
    const auto memory = pipeline::checkUnsplitMemory(*request.plan, request.workload());
    if (!memory.fits()) {
      return fail(ErrorCode::Environment,
                  "{} Give the expected values with --expect, leave the comparison out with --no-check, or start all "
                  "the same with --ignore-memory.",
                  memory.text);
    }
    return {};
  }

  Result<void> checkOutputs(std::vector<NamedFile> read) const {
    read.insert(read.end(), {{"--expect", source.expect}, {"--input", source.input}});
    return refuseOverwriting({{"--output", output}, {"--json", json}, {"--timeline", timeline}}, read);
  }

  /// Starts nothing.
  Result<int> printCommands(const Progress& progress) {
    CLEAVE_TRY(const RunSource::Made made, source.make(progress));
    CLEAVE_TRY(const auto runRequest, request(made.plan));
    CLEAVE_TRY(const std::string commands, cluster.commands(runRequest, source.flags.model, nullptr, progress));
    endProgress();
    CLEAVE_TRY_VOID(writeOutput("-", commands));
    return 0;
  }

  Result<void> checkTrainingFlags() const {
    CLEAVE_TRY_VOID(program::check(training));
    if (training.isAsked() || source.flags.isTraining) return {};
    for (const CLI::Option* option : trainingFlags) {
      if (option->count() > 0)
        return fail(ErrorCode::BadUsage, "{} is for training: say with --train-steps for how many steps.",
                    option->get_name());
    }
    return {};
  }

  Result<void> checkBisectionFlags() const {
    if (!bisects) {
      if (against.empty()) return {};
      return fail(ErrorCode::BadUsage, "--against is what --bisect compares with: add --bisect.");
    }
    const std::pair<const char*, bool> others[] = {
        {"--train-steps", training.isAsked()},
        {"--expect", !source.expect.empty()},
        {"--output", !output.empty()},
        {"--shapes", !shapes.empty()},
        {"--mesh", !source.meshText.empty()},
        {"--timeline", !timeline.empty()},
        {"--no-check", noCheck},
        {cluster.onlyPrints() ? "--print-command" : "--listen", cluster.isAsked()}};
    for (const auto& [flag, isGiven] : others) {
      if (isGiven)
        return fail(ErrorCode::BadUsage,
                    "--bisect compares one forward pass on this machine, value by value: leave {} out.", flag);
    }
    return {};
  }

  Result<int> bisect(const Progress& progress) {
    CLEAVE_TRY(RunSource::Made made, source.make(progress));
    CLEAVE_TRY_VOID(checkOutputs(pipeline::filesBehind(made.plan->model)));
    CLEAVE_TRY(const auto runRequest, request(made.plan));
    CLEAVE_TRY_VOID(checkIsThere(runRequest));
    CLEAVE_TRY_VOID(checkFits(runRequest, progress));
    warnOfNew(made.warnings);
    pipeline::BisectRequest asked{
        .plan = made.plan, .backend = runRequest.backend, .skipWeights = skipWeights, .initMissing = initMissing};
    if (!source.input.empty()) asked.input = source.input;
    if (rtol || atol) asked.tolerance = std::max(rtol.value_or(0), atol.value_or(0));
    if (!against.empty()) {
      CLEAVE_TRY(asked.against, readUnalteredPlan(against));
    }
    return runBisection(asked, json, progress);
  }

  struct Done {
    pipeline::RunVerdict verdict = pipeline::RunVerdict::Failed;
    std::string report;   ///< in JSON
    std::string summary;  ///< in words
    std::optional<Error> failure;
    int exitCode() const { return verdict == pipeline::RunVerdict::Failed ? cleave::exitCode(ErrorCode::Negative) : 0; }
  };

  /// Shows how far the ranks are.
  static launch::Observer follower(const Progress& progress) {
    return [&progress](const launch::RankEvent& event) {
      if (!event.notice.empty()) {
        warn({event.notice});
      } else if (!event.line.empty()) {
        endProgress();
        std::fprintf(stderr, "rank %d: %s\n", event.rank, event.line.c_str());
      } else if (event.message) {
        if (const auto* phase = std::get_if<protocol::PhaseChange>(&*event.message); phase && event.rank == 0) {
          progress.report(protocol::toText(phase->phase), phase->done, phase->total);
        }
        if (const auto* step = std::get_if<protocol::TrainingStep>(&*event.message); step && event.rank == 0)
          progress.report(fmt::format("training, loss {:.6f}", step->loss), step->step, step->steps);
      }
    };
  }

  Result<Done> runOnce(const Progress& progress) {
    CLEAVE_TRY(RunSource::Made made, source.make(progress));
    const auto& plan = made.plan;
    CLEAVE_TRY_VOID(checkOutputs(pipeline::filesBehind(plan->model)));
    CLEAVE_TRY(auto runRequest, request(plan));
    if (source.generation.isAsked()) CLEAVE_TRY_VOID(source.generation.complete(runRequest, progress));
    std::optional<launch::Listener> listener;
    CLEAVE_TRY_VOID(cluster.listenWith(listener, runRequest, progress));
    CLEAVE_TRY_VOID(checkIsThere(runRequest));
    CLEAVE_TRY_VOID(checkFits(runRequest, progress));
    warnOfNew(made.warnings);
    if (listener) CLEAVE_TRY_VOID(cluster.sayHow(runRequest, source.flags.model, *listener, progress));
    CLEAVE_TRY(auto report, pipeline::runPlan(runRequest, follower(progress), progress));
    endProgress();
    report.warnings = std::move(made.warnings);
    if (!timeline.empty() && !report.timeline.isEmpty()) CLEAVE_TRY_VOID(writeTimeline(report.timeline, *plan));
    return doneWith(report, *plan);
  }

  static Done doneWith(const pipeline::RunReport& report, const plan::Plan& plan) {
    Done done;
    done.verdict = report.verdict;
    done.report = toJson(report, plan);
    done.summary = runSummary(report, plan);
    if (report.outcome.firstFailure) {
      const launch::RankExit& failure = *report.outcome.firstFailure;
      const std::string lastWords = failure.lastWords.empty() ? "" : " Its last output: " + failure.lastWords;
      const char* advice = failure.isOutOfMemory
                               ? " Give them more, or ask for less: --batch, --seq, --dtype, and with "
                                 "--train-steps --checkpoint-activations."
                               : "";
      done.failure = Error{failure.code, fmt::format("Rank {} {}.{}{}", failure.rank, failure.what, lastWords, advice)};
    }
    return done;
  }

  Result<int> run() {
    const Progress progress = consoleProgress();
    CLEAVE_TRY_VOID(source.bring(!skipWeights && !cluster.onlyPrints(), progress));
    CLEAVE_TRY_VOID(source.flags.checkPlanStandsAlone(source.planFlags));
    training.clipNorm = clipNorm;
    source.isTraining = training.isAsked();
    source.isElsewhere = cluster.isAsked();
    CLEAVE_TRY_VOID(source.check());
    CLEAVE_TRY_VOID(checkTrainingFlags());
    CLEAVE_TRY_VOID(source.generation.check({{"--train-steps", training.isAsked()},
                                             {"--shapes", !shapes.empty()},
                                             {"--mesh", !source.meshText.empty()},
                                             {"--bisect", bisects},
                                             {"--timeline", !timeline.empty()},
                                             {"--print-command", cluster.onlyPrints()},
                                             {"--listen", cluster.isAsked()},
                                             {"--train", source.flags.isTraining},
                                             {"--batch", source.flags.batch.has_value()},
                                             {"--seq", source.flags.sequence.has_value()}}));
    if (source.generation.isAsked()) CLEAVE_TRY_VOID(source.generation.takePrompt(source.input, source.expect));
    CLEAVE_TRY_VOID(cluster.check(source.flags.model, !shapes.empty()));
    if (cluster.onlyPrints()) return printCommands(progress);
    CLEAVE_TRY_VOID(checkOutputs(source.flags.filesRead()));
    CLEAVE_TRY_VOID(checkBisectionFlags());
    CLEAVE_TRY_VOID(checkShapesFlags());
    if (bisects) return bisect(progress);
    if (json == "-" && timeline == "-")
      return fail(ErrorCode::BadUsage, "--json - and --timeline - both write to standard output: name a file for one.");
    // Before the ranks run: a report that cannot be written is known at once.
    if (!json.empty() && json != "-") {
      CLEAVE_TRY(reportFile, OutputFile::open(json, progress.stopToken()));
    }
    if (!timeline.empty() && timeline != "-") {
      CLEAVE_TRY(timelineFile, OutputFile::open(timeline, progress.stopToken()));
    }
    if (!shapes.empty()) return runShapes(progress);
    CLEAVE_TRY(const Done done, runOnce(progress));
    CLEAVE_TRY_VOID(writeReport(done.report + "\n"));
    const auto printed = print(done.summary);
    if (done.failure) return tl::unexpected(*done.failure);
    CLEAVE_TRY_VOID(printed);
    return done.exitCode();
  }

  Result<void> writeTimeline(const pipeline::Timeline& recorded, const plan::Plan& plan) {
    const std::string text = pipeline::toChromeTrace(recorded, plan);
    if (!timelineFile) return writeOutput(timeline, text);
    CLEAVE_TRY_VOID(timelineFile->write(text));
    return timelineFile->finish();
  }

  Result<void> writeReport(const std::string& text) {
    if (json == "-") return writeOutput(json, text);
    if (!reportFile) return {};
    CLEAVE_TRY_VOID(reportFile->write(text));
    return reportFile->finish();
  }

  /// Words for the terminal, where it does not get one of the documents.
  Result<void> print(const std::string& words) const {
    return json == "-" || timeline == "-" ? Result<void>() : writeOutput("-", words);
  }

  Result<void> checkShapesFlags() const {
    if (shapes.empty()) {
      if (!padsToPlanned) return {};
      return fail(ErrorCode::BadUsage, "--pad-to-planned is about the shapes of --shapes: add them.");
    }
    if (source.isPlan())
      return fail(ErrorCode::BadUsage, "--shapes needs a model, not a plan: a plan is made for one shape.");
    if (!source.input.empty() || !source.expect.empty())
      return fail(ErrorCode::BadUsage, "--shapes and --input or --expect exclude each other.");
    for (const auto& [flag, file] : {std::pair{"--output", &output}, {"--timeline", &timeline}}) {
      if (!file->empty())
        return fail(ErrorCode::BadUsage,
                    "--shapes and {} exclude each other: each run would replace what the one before wrote.", flag);
    }
    return {};
  }

  /// A plan a shape, until one has none: then why.
  struct PlannedShapes {
    pipeline::ShapesRequest request;
    std::optional<Error> failure;
  };

  Result<void> planFirst(const AskedShape& shape, PlannedShapes& planned,
                         std::optional<pipeline::ShapePlanner>& planner, const Progress& progress) {
    source.flags.batch = shape.batch;
    source.flags.sequence = shape.sequence;
    CLEAVE_TRY(const RunSource::Made made, source.make(progress));
    const auto open = [this, model = made.model](
                          std::int64_t batch, std::int64_t sequence) -> Result<std::shared_ptr<const pipeline::Model>> {
      PlanFlags own = source.flags;
      own.batch = batch;
      own.sequence = sequence;
      CLEAVE_TRY(const auto options, own.captureOptions());
      return pipeline::captureAgain(*model, options);
    };
    planner.emplace(pipeline::ShapePlanning{open, source.mesh.dp, padsToPlanned});
    CLEAVE_TRY(planned.request.run, request(made.plan));
    CLEAVE_TRY_VOID(checkRun(planned.request.run, progress));
    warnOfNew(made.warnings);
    CLEAVE_TRY(planned.request.shapes.emplace_back(), planner->first(made.plan, shape.batch, shape.sequence));
    return {};
  }

  Result<void> planNext(const AskedShape& shape, PlannedShapes& planned, pipeline::ShapePlanner& planner,
                        const Progress& progress) {
    CLEAVE_TRY_VOID(source.rowsOfReplica(shape.batch));
    CLEAVE_TRY(auto next, planner.next(shape.batch, shape.sequence, progress));
    pipeline::RunRequest own = planned.request.run;
    own.plan = next.plan;
    CLEAVE_TRY_VOID(checkFits(own, progress));
    planned.request.shapes.push_back(std::move(next));
    return {};
  }

  Result<void> checkRun(const pipeline::RunRequest& runRequest, const Progress& progress) const {
    CLEAVE_TRY_VOID(checkOutputs(pipeline::filesBehind(runRequest.plan->model)));
    CLEAVE_TRY_VOID(checkIsThere(runRequest));
    return checkFits(runRequest, progress);
  }

  PlannedShapes planShapes(const std::vector<AskedShape>& wanted, const Progress& progress) {
    PlannedShapes planned;
    std::optional<pipeline::ShapePlanner> planner;
    for (const AskedShape& shape : wanted) {
      const auto made =
          planner ? planNext(shape, planned, *planner, progress) : planFirst(shape, planned, planner, progress);
      if (made) continue;
      planned.failure = made.error();
      break;
    }
    return planned;
  }

  /// One document for all shapes, also when one of them is the last because it failed.
  Result<int> runShapes(const Progress& progress) {
    CLEAVE_TRY(const auto wanted, parseShapes(shapes));
    const PlannedShapes planned = planShapes(wanted, progress);
    std::vector<pipeline::RunReport> reports;
    std::optional<Error> failure = planned.failure;
    if (!failure) {
      auto ran = pipeline::runShapes(planned.request, follower(progress), progress);
      endProgress();
      if (ran)
        reports = *std::move(ran);
      else
        failure = ran.error();
    }
    ShapesDocument document;
    int worst = 0;
    Result<void> printed;
    for (std::size_t i = 0; i < reports.size(); ++i) {
      const Done done = doneWith(reports[i], *planned.request.shapes[i].plan);
      const bool isChecked = done.verdict != pipeline::RunVerdict::NotChecked;
      worst = std::max(worst, done.exitCode());
      document.add(wanted[i], done.report, isChecked ? std::optional(done.exitCode() == 0) : std::nullopt);
      if (printed) printed = print(fmt::format("{}\n{}", wanted[i].words(), done.summary));
      if (done.failure) failure = Error{done.failure->code, wanted[i].words() + ": " + done.failure->message};
    }
    if (failure && (reports.empty() || !reports.back().outcome.firstFailure)) {
      const AskedShape& shape = wanted[planned.failure ? planned.request.shapes.size() : reports.size()];
      document.add(shape, *failure);
      if (!failure->message.starts_with(shape.words())) failure->message = shape.words() + ": " + failure->message;
    }
    CLEAVE_TRY_VOID(writeReport(document.text()));
    if (failure) return tl::unexpected(*std::move(failure));
    CLEAVE_TRY_VOID(printed);
    return worst;
  }
};

}  // namespace

void addRunCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<RunCommand>();
  CLI::App* command =
      app.add_subcommand("run", "Run the split model on local ranks and check that it computes the same");
  state->source.addTo(*command);
  command->add_option("--backend", state->backend, "auto, nccl or gloo")
      ->type_name(option_types::oneOf({"auto", "nccl", "gloo"}))
      ->capture_default_str();
  command
      ->add_option("--rtol", state->rtol,
                   "Compare by atol + rtol × |expected| instead of by rounding (default: by rounding, docs/running.md)")
      ->check(finiteTolerance());
  command
      ->add_option("--atol", state->atol,
                   "Compare by atol + rtol × |expected| instead of by rounding (default: by rounding, docs/running.md)")
      ->check(finiteTolerance());
  command->add_option("--output", state->output, "Write the outputs as safetensors")->type_name(option_types::kFile);
  command->add_option("--shapes", state->shapes,
                      "BATCHxSEQUENCE,…: run these one after the other in the same ranks, which load the weights once");
  command->add_flag("--pad-to-planned", state->padsToPlanned,
                    "With --shapes: pad a shape that fits into one before it, instead of planning it");
  command
      ->add_option("--train-steps", state->training.steps,
                   "Train for so many steps instead of one forward pass; --optimizer says how. Outputs are "
                   "losses and, as param.NAME, the parameters after the last step")
      ->check(CLI::Range(std::int64_t{1}, program::kMostSteps));
  state->trainingFlags = {
      command->add_option("--lr", state->training.learningRate, "With --train-steps: learning rate")
          ->capture_default_str(),
      command->add_option("--weight-decay", state->training.weightDecay, "With --train-steps: weight decay")
          ->capture_default_str(),
      command->add_option("--clip-norm", state->clipNorm,
                          "With --train-steps: scale gradients down to this norm, of all ranks together"),
      command
          ->add_option("--accumulate", state->training.accumulate,
                       "With --train-steps: micro-batches a step, one behind the other in --input, or made up")
          ->capture_default_str(),
      command->get_option("--optimizer"),
      command->get_option("--checkpoint-activations")};
  command->add_flag("--bisect", state->bisects,
                    "Compare one forward pass value by value with an unsplit run, and name the first that differs");
  command->add_option("--against", state->against, "With --bisect: compare with this plan of the same model instead")
      ->check(CLI::ExistingFile);
  command->add_flag("--skip-weights", state->skipWeights,
                    "Fill all parameters from the seed instead of reading the checkpoint");
  command->add_flag("--init-missing", state->initMissing, "Fill parameters that the checkpoint lacks from the seed");
  command->add_flag("--no-check", state->noCheck, "Without --expect: do not compare with an unsplit run");
  command->add_flag(
      "--ignore-memory", state->ignoreMemory,
      "Start although the ranks, or the unsplit run they are compared with, are predicted not to fit into memory");
  state->cluster.addTo(*command);
  state->source.generation.addTo(*command);
  command
      ->add_option("--silence", state->silence,
                   "Seconds: a rank that gives no sign of life for so long has failed, and the run with it")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
  command
      ->add_option("--collective-timeout", state->collectiveTimeout,
                   "Fail the run when a collective has not completed after this many seconds (default: 600)")
      ->check(CLI::Range(1, 86'400));
  command
      ->add_option("--timeline", state->timeline,
                   "Write what each rank did when, in the last step, in the format of chrome://tracing and "
                   "ui.perfetto.dev; - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->add_option("--json", state->json, "Write the report as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
