#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "cli/summary.h"
#include "pipeline/plan_again.h"

#include <charconv>
#include <cmath>
#include <csignal>

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
    const auto sequence = hasX ? std::from_chars(batch.ptr + 1, end, shape.sequence) : std::from_chars_result{at, std::errc::invalid_argument};
    if (sequence.ec != std::errc() || (sequence.ptr < end && *sequence.ptr != ',') || shape.batch < 1 || shape.sequence < 1) {
      return fail(ErrorCode::BadUsage, "--shapes is \"{}\": write BATCHxSEQUENCE, several separated by commas, e.g. 2x16,1x64.", text);
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
        const bool isGood = error == std::errc() && stop == text.data() + text.size() && std::isfinite(value) && value >= 0;
        return isGood ? "" : "a tolerance is a finite number from 0 on, not " + text;
      },
      "NUMBER");
}

struct RunCommand {
  PlanFlags flags;
  std::string backend = "auto", input, expect, output, json, shapes;
  std::optional<double> rtol, atol;
  bool skipWeights = false, initMissing = false, noCheck = false, ignoreMemory = false;

  /// Batch, sequence, mask and loss that the input file asks for, where no flag says otherwise.
  Result<void> takeShapeFromInput() {
    const std::string& file = input.empty() ? expect : input;
    if (file.empty()) return {};
    CLEAVE_TRY(const auto shape, pipeline::readInputShape(file));
    if (!flags.batch) flags.batch = shape.batch;
    if (!flags.sequence) flags.sequence = shape.sequence;
    if (shape.hasMask) flags.mask = "on";
    if (!shape.hasLabels) flags.loss = "off";
    return {};
  }

  /// The plan of the file; where the inputs are of another shape, one that is made for them as that one was made.
  Result<std::shared_ptr<const plan::Plan>> planFor(const Progress& progress) const {
    CLEAVE_TRY(auto plan, readPlanFile(flags.model));
    const std::string& file = input.empty() ? expect : input;
    if (file.empty()) return plan;
    CLEAVE_TRY(const auto shape, pipeline::readInputShape(file));
    const plan::ModelInfo wanted = pipeline::withInputs(plan->model, shape);
    if (pipeline::inputsInWords(wanted) == pipeline::inputsInWords(plan->model)) return plan;
    endProgress();
    std::fprintf(stderr, "%s is planned for %s; %s has %s: planned again for that, with the same settings.\n", flags.model.c_str(),
                 pipeline::inputsInWords(plan->model).c_str(), file.c_str(), pipeline::inputsInWords(wanted).c_str());
    return pipeline::planAgain(*plan, wanted, progress);
  }

  Result<std::shared_ptr<const plan::Plan>> makePlan(const Progress& progress) {
    if (isPlanFile(flags.model)) return planFor(progress);
    CLEAVE_TRY_VOID(takeShapeFromInput());
    CLEAVE_TRY(const Planned planned, planModel(flags, false, progress));
    if (!planned.plan) return tl::unexpected(planned.planError);
    return planned.plan;
  }

  Result<pipeline::RunRequest> request(std::shared_ptr<const plan::Plan> plan) const {
    pipeline::RunRequest request;
    const auto parsed = run::parseBackend(backend);
    if (!parsed) return fail(ErrorCode::BadUsage, "--backend is \"{}\": write auto, gloo or nccl.", backend);
    request.backend = *parsed;
    if (!input.empty()) request.input = input;
    if (!expect.empty()) request.expect = expect;
    if (!output.empty()) request.output = output;
    const double tolerance = pipeline::defaultTolerance(plan->model.dtype);
    request.rtol = rtol.value_or(tolerance);
    request.atol = atol.value_or(tolerance);
    request.skipWeights = skipWeights;
    request.initMissing = initMissing;
    request.compareUnsplit = !noCheck;
    request.ignoreMemory = ignoreMemory;
    request.plan = std::move(plan);
    return request;
  }

  /// The same check stands in runPlan; here it can name the flag.
  static Result<void> checkFits(const pipeline::RunRequest& request) {
    CLEAVE_TRY(const run::Backend backend, run::resolveBackend(request.backend, request.plan->ranks));
    const auto memory = pipeline::checkMemory(*request.plan, backend);
    if (request.ignoreMemory || memory.fits()) return {};
    return fail(ErrorCode::Environment,
                "{} Free memory, ask for less with --batch, --seq or --dtype, or start the ranks all the same with --ignore-memory.", memory.text);
  }

  struct Done {
    int exitCode = 0;
    std::string report;  ///< in JSON
    std::optional<Error> failure;
  };

  Result<Done> runOnce(const Progress& progress) {
    CLEAVE_TRY(const auto plan, makePlan(progress));
    CLEAVE_TRY(const auto runRequest, request(plan));
    CLEAVE_TRY_VOID(checkFits(runRequest));
    const auto observer = [&](const run::RankEvent& event) {
      if (!event.line.empty()) {
        endProgress();
        std::fprintf(stderr, "rank %d: %s\n", event.rank, event.line.c_str());
      } else if (event.message) {
        if (const auto* phase = std::get_if<run::PhaseChange>(&*event.message); phase && event.rank == 0) {
          progress.report(run::toText(phase->phase), phase->done, phase->total);
        }
      }
    };
    CLEAVE_TRY(const auto report, pipeline::runPlan(runRequest, observer, progress));
    endProgress();
    Done done;
    done.report = toJson(report, *plan);
    if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", runSummary(report, *plan)));
    if (report.outcome.firstFailure) {
      const run::RankExit& failure = *report.outcome.firstFailure;
      const std::string lastWords = failure.lastWords.empty() ? "" : " Its last words: " + failure.lastWords;
      done.failure = Error{failure.code, fmt::format("Rank {} {}.{}", failure.rank, failure.what, lastWords)};
    }
    done.exitCode = report.verdict == pipeline::RunVerdict::Failed ? exitCode(ErrorCode::Negative) : 0;
    return done;
  }

  Result<int> run() {
    // Whoever reads the progress may go: the ranks and their result are not concerned.
    std::signal(SIGPIPE, SIG_IGN);
    const Progress progress = consoleProgress();
    if (!shapes.empty()) return runShapes(progress);
    CLEAVE_TRY(const Done done, runOnce(progress));
    if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, done.report + "\n"));
    if (done.failure) return tl::unexpected(*done.failure);
    return done.exitCode;
  }

  /// One document for all shapes, also when one of them is the last because it failed.
  Result<int> runShapes(const Progress& progress) {
    if (isPlanFile(flags.model)) return fail(ErrorCode::BadUsage, "--shapes needs a model, not a plan: a plan is made for one shape.");
    if (!input.empty() || !expect.empty()) return fail(ErrorCode::BadUsage, "--shapes and --input or --expect exclude each other.");
    if (!output.empty()) return fail(ErrorCode::BadUsage, "--shapes and --output exclude each other: each run would replace the outputs of the one before.");
    CLEAVE_TRY(const auto wanted, parseShapes(shapes));
    int worst = 0;
    std::string reports;
    std::optional<Error> failure;
    for (const Shape2& shape : wanted) {
      flags.batch = shape.batch;
      flags.sequence = shape.sequence;
      auto done = runOnce(progress);
      failure = done ? done->failure : done.error();
      if (done) {
        worst = std::max(worst, done->exitCode);
        reports += fmt::format("{}{{\"batch\": {}, \"sequence\": {}, \"report\": {}}}", reports.empty() ? "" : ",\n", shape.batch, shape.sequence, done->report);
      }
      if (failure) break;
    }
    const bool passed = worst == 0 && !failure;
    if (!json.empty()) {
      CLEAVE_TRY_VOID(writeOutput(json, fmt::format("{{\"schema\": \"cleave.runs/1\",\n\"passed\": {},\n\"runs\": [\n{}\n]}}\n", passed, reports)));
    }
    if (failure) return tl::unexpected(*std::move(failure));
    return worst;
  }
};

}  // namespace

void addRunCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<RunCommand>();
  CLI::App* command = app.add_subcommand("run", "Run the split model on local ranks and check that it computes the same");
  state->flags.addTo(*command);
  command->get_option("MODEL")->description("Model folder, config.json, or a plan file written by plan --json");
  command->add_option("--backend", state->backend, "auto, nccl or gloo")->capture_default_str();
  command->add_option("--input", state->input, "safetensors with input_ids, labels, attention_mask")->check(CLI::ExistingFile);
  command->add_option("--expect", state->expect, "safetensors with the expected logits and loss")->check(CLI::ExistingFile);
  command->add_option("--rtol", state->rtol, "Relative tolerance (default: by dtype; float32 1e-4)")->check(finiteTolerance());
  command->add_option("--atol", state->atol, "Absolute tolerance (default: by dtype; float32 1e-4)")->check(finiteTolerance());
  command->add_option("--output", state->output, "Write the outputs as safetensors");
  command->add_option("--shapes", state->shapes, "Repeat for BATCHxSEQUENCE,…");
  command->add_flag("--skip-weights", state->skipWeights, "Fill all parameters from the seed instead of reading the checkpoint");
  command->add_flag("--init-missing", state->initMissing, "Fill parameters that the checkpoint lacks from the seed");
  command->add_flag("--no-check", state->noCheck, "Without --expect: do not compare with an unsplit run");
  command->add_flag("--ignore-memory", state->ignoreMemory, "Start the ranks although they are predicted not to fit into memory");
  command->add_option("--json", state->json, "Write the report as JSON to a file, or - for stdout");
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
