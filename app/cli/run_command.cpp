#include "base/json.h"
#include "base/output_file.h"
#include "cli/bisecting.h"
#include "cli/cluster_flags.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/generation_flags.h"
#include "cli/planning.h"
#include "cli/summary.h"
#include "formats/safetensors.h"
#include "pipeline/compare.h"
#include "pipeline/folder_check.h"
#include "pipeline/plan_again.h"
#include "pipeline/source.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <set>

namespace cleave::cli {
namespace {

struct Shape2 {
  std::int64_t batch = 1, sequence = 1;
};

/// "2x16,1x64"
Result<std::vector<Shape2>> parseShapes(const std::string& text) {
  std::vector<Shape2> shapes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Shape2 shape;
    const auto batch = std::from_chars(at, end, shape.batch);
    const bool hasX = batch.ec == std::errc() && batch.ptr < end && *batch.ptr == 'x';
    const auto sequence = hasX ? std::from_chars(batch.ptr + 1, end, shape.sequence)
                               : std::from_chars_result{at, std::errc::invalid_argument};
    if (sequence.ec != std::errc() || (sequence.ptr < end && *sequence.ptr != ',') || shape.batch < 1 ||
        shape.sequence < 1) {
      return fail(ErrorCode::BadUsage,
                  "--shapes is \"{}\": write BATCHxSEQUENCE, several separated by commas, e.g. 2x16,1x64.", text);
    }
    shapes.push_back(shape);
    at = sequence.ptr + 1;
  }
  return shapes;
}

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

std::string errorJson(const Error& error) {
  return jsonText({{"code", exitCode(error.code)}, {"message", error.message}}, -1);
}

struct RunCommand {
  PlanFlags flags;
  std::vector<const CLI::Option*> planFlags, trainingFlags;
  ClusterFlags cluster;
  GenerationFlags generation;
  std::string backend = "auto", input, expect, output, json, shapes, timeline, against;
  std::optional<double> rtol, atol;
  program::Training training;
  std::optional<double> clipNorm;
  std::optional<OutputFile> reportFile;    ///< of --json FILE
  std::optional<OutputFile> timelineFile;  ///< of --timeline FILE
  std::set<std::string> said;              ///< warnings
  bool bisects = false;
  bool skipWeights = false, initMissing = false, noCheck = false, ignoreMemory = false;

  /// A loss that is expected is not left out because nothing says what to compute it from.
  Result<void> checkLossIsNotExpected(const std::string& inputs) const {
    if (expect.empty()) return {};
    CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(expect));
    if (!header.tensors.contains("loss")) return {};
    return fail(ErrorCode::BadInput,
                "{} has a loss, and {} no labels to compute one from: add labels, or leave the loss out {}.", expect,
                inputs, isPlanFile(flags.model) ? "of the plan" : "with --loss off");
  }

  /// Empty: inputs are made up.
  Result<std::string> inputFile() const {
    if (!input.empty() || expect.empty() || !training.isAsked()) return input.empty() ? expect : input;
    CLEAVE_TRY(const bool hasInputs, pipeline::holdsInputs(expect));
    return hasInputs ? expect : std::string();
  }

  /// Batch, sequence, mask and loss that the input file asks for, where no flag says otherwise.
  Result<void> takeShapeFromInput() {
    if (generation.isAsked()) {
      generation.setShape(flags);
      return {};
    }
    CLEAVE_TRY(const std::string file, inputFile());
    if (file.empty()) return {};
    if (const auto source = pipeline::recognise(flags.model); source && source->isExported)
      return takeSizesFromInput(source->path, file);
    const bool wantsLoss = flags.loss != "off";
    CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, wantsLoss));
    if (!flags.batch) flags.batch = shape.batch;
    if (!flags.sequence) flags.sequence = shape.sequence;
    if (shape.hasMask) flags.mask = "on";
    if (shape.hasTokenTypes) flags.tokenTypes = "on";
    if (wantsLoss && !shape.hasLabels) {
      CLEAVE_TRY_VOID(checkLossIsNotExpected(file));
      flags.loss = "off";
    }
    return {};
  }

  Result<void> takeSizesFromInput(const fs::path& archive, const std::string& file) {
    if (flags.batch || flags.sequence || !flags.sizes.empty()) return {};
    CLEAVE_TRY(const auto program, formats::openExportedProgram(archive));
    CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
    for (const auto& [symbol, size] : sizes) flags.sizes.push_back(fmt::format("{}={}", symbol, size));
    return {};
  }

  /// The model of a plan with the inputs of a file.
  Result<plan::ModelInfo> modelFor(const plan::ModelInfo& model, const std::string& file) const {
    if (model.isExported) {
      CLEAVE_TRY(const auto program, formats::openExportedProgram(model.source));
      CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
      plan::ModelInfo wanted = model;
      for (const auto& [symbol, size] : sizes) wanted.sizes[symbol] = size;
      return wanted;
    }
    CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, model.hasLoss));
    if (model.hasLoss && !shape.hasLabels) CLEAVE_TRY_VOID(checkLossIsNotExpected(file));
    return pipeline::withInputs(model, shape);
  }

  /// The plan of the file; where the inputs are of another shape, one that is made for them as that one was made.
  Result<std::shared_ptr<const plan::Plan>> planFor(const Progress& progress) const {
    CLEAVE_TRY(auto plan, readPlanFile(flags.model));
    CLEAVE_TRY(const std::string file, inputFile());
    if (generation.isAsked()) {
      CLEAVE_TRY_VOID(pipeline::openSameModel(*plan, progress));
      return pipeline::planAgain(*plan, generation.modelFor(plan->model), progress);
    }
    if (file.empty()) return plan;
    CLEAVE_TRY(const plan::ModelInfo wanted, modelFor(plan->model, file));
    if (pipeline::inputsInWords(wanted) == pipeline::inputsInWords(plan->model)) return plan;
    if (cluster.isAsked()) {
      return fail(ErrorCode::BadInput,
                  "{} is planned for {}; {} has {}. Ranks elsewhere read the plan's file: make one for that.",
                  flags.model, pipeline::inputsInWords(plan->model), file, pipeline::inputsInWords(wanted));
    }
    endProgress();
    std::fprintf(stderr, "%s is planned for %s; %s has %s: planned again for that, with the same settings.\n",
                 flags.model.c_str(), pipeline::inputsInWords(plan->model).c_str(), file.c_str(),
                 pipeline::inputsInWords(wanted).c_str());
    CLEAVE_TRY_VOID(pipeline::openSameModel(*plan, progress));
    return pipeline::planAgain(*plan, wanted, progress);
  }

  struct ToRun {
    std::shared_ptr<const plan::Plan> plan;
    std::vector<std::string> warnings;
  };
  Result<ToRun> makePlan(const Progress& progress) {
    ToRun made;
    if (isPlanFile(flags.model)) {
      CLEAVE_TRY(made.plan, planFor(progress));
      made.warnings = made.plan->warnings;
      return made;
    }
    CLEAVE_TRY_VOID(takeShapeFromInput());
    if (training.isAsked()) flags.isTraining = true;
    CLEAVE_TRY(const Planned planned, planModel(flags, false, progress));
    if (!planned.plan) return tl::unexpected(planned.planError);
    made.plan = planned.plan;
    made.warnings = made.plan->warnings;
    CLEAVE_TRY_VOID(addIgnoredKeys(*planned.model, made.warnings));
    return made;
  }

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
    if (!input.empty()) request.input = input;
    if (!expect.empty()) request.expect = expect;
    CLEAVE_TRY(const std::string inputs, inputFile());
    request.expectHasInputs = !inputs.empty();
    if (!output.empty()) request.output = output;
    const double tolerance = pipeline::defaultTolerance(plan->model.dtype);
    request.rtol = rtol.value_or(tolerance);
    request.atol = atol.value_or(tolerance);
    request.skipWeights = skipWeights;
    request.initMissing = initMissing;
    request.compareUnsplit = !noCheck;
    request.ignoreMemory = ignoreMemory;
    request.training = training;
    request.training.optimizer = plan->costSettings.optimizer;
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

  static Result<void> checkRanksFit(const pipeline::RunRequest& request) {
    CLEAVE_TRY(const launch::Backend backend, launch::resolveBackend(request.backend, request.plan->ranks));
    const auto memory = pipeline::checkMemory(*request.plan, backend, request.step.get());
    if (memory.fits()) return {};
    return fail(ErrorCode::Environment,
                "{} Free memory, ask for less with --batch, --seq or --dtype, or start the ranks all the same with "
                "--ignore-memory.",
                memory.text);
  }

  static Result<void> checkFits(const pipeline::RunRequest& request) {
    if (request.ignoreMemory) return {};
    if (!request.attended) CLEAVE_TRY_VOID(checkRanksFit(request));
    if (!request.comparesUnsplit()) return {};
    if (const auto memory = pipeline::checkUnsplitMemory(*request.plan, request.step.get()); !memory.fits()) {
      return fail(ErrorCode::Environment,
                  "{} Give the expected values with --expect, leave the comparison out with --no-check, or start all "
                  "the same with --ignore-memory.",
                  memory.text);
    }
    return {};
  }

  Result<void> checkOutputs(std::vector<NamedFile> read) const {
    read.insert(read.end(), {{"--expect", expect}, {"--input", input}});
    return refuseOverwriting({{"--output", output}, {"--json", json}, {"--timeline", timeline}}, read);
  }

  /// Starts nothing.
  Result<int> printCommands(const Progress& progress) {
    CLEAVE_TRY(const ToRun made, makePlan(progress));
    CLEAVE_TRY(const auto runRequest, request(made.plan));
    CLEAVE_TRY(const std::string commands, cluster.commands(runRequest, flags.model, nullptr));
    endProgress();
    CLEAVE_TRY_VOID(writeOutput("-", commands));
    return 0;
  }

  Result<void> checkTrainingFlags() const {
    CLEAVE_TRY_VOID(program::check(training));
    if (training.isAsked()) return {};
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
        {"--expect", !expect.empty()},
        {"--output", !output.empty()},
        {"--shapes", !shapes.empty()},
        {"--timeline", !timeline.empty()},
        {"--no-check", noCheck},
        {cluster.onlyPrints() ? "--print-command" : "--listen", cluster.isAsked()}};
    for (const auto& [flag, isGiven] : others) {
      if (isGiven)
        return fail(ErrorCode::BadUsage,
                    "--bisect compares one forward pass on this machine, value by value: leave {} out.", flag);
    }
    if (backend == "nccl") return fail(ErrorCode::BadUsage, "--bisect runs on CPUs: leave --backend nccl out.");
    return {};
  }

  Result<int> bisect(const Progress& progress) {
    CLEAVE_TRY(ToRun made, makePlan(progress));
    CLEAVE_TRY_VOID(checkOutputs(pipeline::filesBehind(made.plan->model)));
    CLEAVE_TRY(const auto runRequest, request(made.plan));
    CLEAVE_TRY_VOID(checkIsThere(runRequest));
    CLEAVE_TRY_VOID(checkFits(runRequest));
    warnOfNew(made.warnings);
    pipeline::BisectRequest asked{.plan = made.plan, .skipWeights = skipWeights, .initMissing = initMissing};
    if (!input.empty()) asked.input = input;
    if (rtol || atol) asked.tolerance = std::max(rtol.value_or(0), atol.value_or(0));
    if (!against.empty()) {
      CLEAVE_TRY(asked.against, readPlanFile(against));
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

  Result<Done> runOnce(const Progress& progress) {
    CLEAVE_TRY(ToRun made, makePlan(progress));
    const auto& plan = made.plan;
    CLEAVE_TRY_VOID(checkOutputs(pipeline::filesBehind(plan->model)));
    CLEAVE_TRY(auto runRequest, request(plan));
    if (generation.isAsked()) CLEAVE_TRY_VOID(generation.complete(runRequest, progress));
    std::optional<launch::Listener> listener;
    CLEAVE_TRY_VOID(cluster.listenWith(listener, runRequest));
    CLEAVE_TRY_VOID(checkIsThere(runRequest));
    CLEAVE_TRY_VOID(checkFits(runRequest));
    warnOfNew(made.warnings);
    if (listener) CLEAVE_TRY_VOID(cluster.sayHow(runRequest, flags.model, *listener));
    const auto observer = [&](const launch::RankEvent& event) {
      if (!event.line.empty()) {
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
    CLEAVE_TRY(auto report, pipeline::runPlan(runRequest, observer, progress));
    endProgress();
    report.warnings = std::move(made.warnings);
    Done done;
    done.verdict = report.verdict;
    done.report = toJson(report, *plan);
    done.summary = runSummary(report, *plan);
    if (!timeline.empty() && !report.timeline.isEmpty()) CLEAVE_TRY_VOID(writeTimeline(report.timeline, *plan));
    if (report.outcome.firstFailure) {
      const launch::RankExit& failure = *report.outcome.firstFailure;
      const std::string lastWords = failure.lastWords.empty() ? "" : " Its last output: " + failure.lastWords;
      done.failure = Error{failure.code, fmt::format("Rank {} {}.{}", failure.rank, failure.what, lastWords)};
    }
    return done;
  }

  Result<int> run() {
    const Progress progress = consoleProgress();
    CLEAVE_TRY_VOID(flags.checkPlanStandsAlone(planFlags));
    training.clipNorm = clipNorm;
    CLEAVE_TRY_VOID(checkTrainingFlags());
    CLEAVE_TRY_VOID(generation.check({{"--train-steps", training.isAsked()},
                                      {"--shapes", !shapes.empty()},
                                      {"--bisect", bisects},
                                      {"--timeline", !timeline.empty()},
                                      {"--print-command", cluster.onlyPrints()},
                                      {"--listen", cluster.isAsked()},
                                      {"--batch", flags.batch.has_value()},
                                      {"--seq", flags.sequence.has_value()}}));
    if (generation.isAsked()) CLEAVE_TRY_VOID(generation.takePrompt(input, expect));
    CLEAVE_TRY_VOID(cluster.check(flags.model, !shapes.empty()));
    if (cluster.onlyPrints()) return printCommands(progress);
    CLEAVE_TRY_VOID(checkOutputs(flags.filesRead()));
    CLEAVE_TRY_VOID(checkBisectionFlags());
    if (bisects) return bisect(progress);
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

  /// Words for the terminal, where it does not get the JSON.
  Result<void> print(const std::string& words) const { return json == "-" ? Result<void>() : writeOutput("-", words); }

  /// One document for all shapes, also when one of them is the last because it failed.
  Result<int> runShapes(const Progress& progress) {
    if (isPlanFile(flags.model))
      return fail(ErrorCode::BadUsage, "--shapes needs a model, not a plan: a plan is made for one shape.");
    if (!input.empty() || !expect.empty())
      return fail(ErrorCode::BadUsage, "--shapes and --input or --expect exclude each other.");
    for (const auto& [flag, file] : {std::pair{"--output", &output}, {"--timeline", &timeline}}) {
      if (!file->empty())
        return fail(ErrorCode::BadUsage,
                    "--shapes and {} exclude each other: each run would replace what the one before wrote.", flag);
    }
    CLEAVE_TRY(const auto wanted, parseShapes(shapes));
    int worst = 0;
    bool isAllChecked = true;
    std::string reports;
    std::optional<Error> failure;
    Result<void> printed;
    for (const Shape2& shape : wanted) {
      flags.batch = shape.batch;
      flags.sequence = shape.sequence;
      auto done = runOnce(progress);
      failure = done ? done->failure : done.error();
      const std::string report = done ? "\"report\": " + done->report : "\"error\": " + errorJson(done.error());
      reports += fmt::format("{}{{\"batch\": {}, \"sequence\": {}, {}}}", reports.empty() ? "" : ",\n", shape.batch,
                             shape.sequence, report);
      if (done) {
        worst = std::max(worst, done->exitCode());
        isAllChecked = isAllChecked && done->verdict != pipeline::RunVerdict::NotChecked;
        if (printed)
          printed = print(fmt::format("batch {}, sequence {}\n{}", shape.batch, shape.sequence, done->summary));
      }
      if (failure) {
        failure->message = fmt::format("batch {}, sequence {}: {}", shape.batch, shape.sequence, failure->message);
        break;
      }
    }
    const char* passed = worst != 0 || failure ? "false" : isAllChecked ? "true" : "null";
    CLEAVE_TRY_VOID(writeReport(
        fmt::format("{{\"schema\": \"cleave.runs/1\",\n\"passed\": {},\n\"runs\": [\n{}\n]}}\n", passed, reports)));
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
  state->planFlags = state->flags.addTo(*command);
  command->get_option("MODEL")->description(
      "Model folder, config.json, exported program (.pt2), or a plan file written by plan --json");
  command->add_option("--backend", state->backend, "auto, nccl or gloo")->capture_default_str();
  command
      ->add_option("--input", state->input,
                   "safetensors with input_ids, labels, attention_mask, token_type_ids; of an exported program its "
                   "inputs by their names")
      ->check(CLI::ExistingFile);
  command
      ->add_option(
          "--expect", state->expect,
          "safetensors with the expected logits and loss; of an exported program output, or output_0, output_1, ...")
      ->check(CLI::ExistingFile);
  command->add_option("--rtol", state->rtol, "Relative tolerance (default: by dtype; float32 1e-4)")
      ->check(finiteTolerance());
  command->add_option("--atol", state->atol, "Absolute tolerance (default: by dtype; float32 1e-4)")
      ->check(finiteTolerance());
  command->add_option("--output", state->output, "Write the outputs as safetensors");
  command->add_option("--shapes", state->shapes, "Repeat for BATCHxSEQUENCE,…");
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
          ->capture_default_str()};
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
  state->generation.addTo(*command);
  command->add_option("--timeline", state->timeline,
                      "Write what each rank did when, in the last step, in the format of chrome://tracing and "
                      "ui.perfetto.dev; - for stdout");
  command->add_option("--json", state->json, "Write the report as JSON to a file, or - for stdout");
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
