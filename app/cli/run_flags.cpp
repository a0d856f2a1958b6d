#include "cli/run_flags.h"

#include "pipeline/session/option_types.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

namespace cleave::cli {
namespace {

/// Rejects an infinite tolerance, which would accept any output, and a negative one.
CLI::Validator finiteTolerance() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool isGood =
            error == std::errc() && stop == text.data() + text.size() && std::isfinite(value) && value >= 0;
        return isGood ? "" : "a tolerance is a finite number of at least 0, not " + text;
      },
      "NUMBER");
}

struct Given {
  const char* flag;
  bool isGiven;
};

/// BadUsage for the first of them that is given.
Result<void> exclude(std::initializer_list<Given> others, std::string_view why) {
  for (const auto& [flag, isGiven] : others) {
    if (isGiven) return fail(ErrorCode::BadUsage, "{}: leave {} out.", why, flag);
  }
  return {};
}

}  // namespace

void RunFlags::addSharedFlags(CLI::App& command) {
  source.addTo(command);
  command.add_option("--backend", backend, "auto, nccl or gloo")
      ->type_name(option_types::oneOf({"auto", "nccl", "gloo"}))
      ->capture_default_str();
  constexpr const char* kTolerance =
      "Compare by atol + rtol × |expected| instead of by rounding (default: by rounding, docs/running.md)";
  command.add_option("--rtol", rtol, kTolerance)->check(finiteTolerance());
  command.add_option("--atol", atol, kTolerance)->check(finiteTolerance());
  command.add_flag("--skip-weights", skipWeights,
                   "Fill all parameters from the seed instead of reading the checkpoint");
  command.add_flag("--init-missing", initMissing, "Fill parameters that the checkpoint lacks from the seed");
  command.add_flag("--ignore-memory", ignoreMemory,
                   "Start even if the ranks, or the unsplit run they are compared with, are predicted not to fit");
  command.add_option("--silence", silence, "Fail the run if a rank is silent for this many seconds")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
  command
      .add_option("--collective-timeout", collectiveTimeout,
                  "Fail the run when a collective has not completed after this many seconds (default: 600)")
      ->check(CLI::Range(1, 86'400));
  command.add_option("--json", json, "Write the report as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
}

/// Flags of the modes that run the ranks of one plan once: all but a bisection.
void RunFlags::addPassFlags(CLI::App& command) {
  command.add_option("--output", output, "Write the outputs as safetensors")->type_name(option_types::kFile);
  command.add_flag("--no-check", noCheck, "Without --expect: do not compare with an unsplit run");
  if (mode == RunMode::Generate) return;
  source.addMeshTo(command);
  cluster.addTo(command);
  command.add_option("--shapes", shapes,
                     "BATCHxSEQUENCE,…: run these one after the other in the same ranks, which load the weights once");
  command.add_flag("--pad-to-planned", padsToPlanned,
                   "With --shapes: pad a shape that fits into an earlier one instead of planning it");
  command
      .add_option("--timeline", timeline,
                  "Write when each rank did what in the last step, in the format of chrome://tracing and "
                  "ui.perfetto.dev; - for stdout")
      ->type_name(option_types::kFileOrDash);
}

void RunFlags::addTrainingFlags(CLI::App& command) {
  CLI::Option* steps =
      command
          .add_option(mode == RunMode::Train ? "--steps" : "--train-steps", training.steps,
                      "Training steps. Outputs are the losses and, as param.NAME, the parameters after the last step")
          ->check(CLI::Range(std::int64_t{1}, program::kMostSteps));
  if (mode == RunMode::Train) steps->required();
  old(steps, "train MODEL --steps N");
  for (CLI::Option* option :
       {command.add_option("--lr", training.learningRate, "Learning rate")->capture_default_str(),
        command.add_option("--weight-decay", training.weightDecay, "Weight decay")->capture_default_str(),
        command.add_option("--clip-norm", clipNorm, "Scale gradients down to this norm, over all ranks"),
        command
            .add_option("--accumulate", training.accumulate,
                        "Micro-batches per step, one after the other in --input, or random")
            ->capture_default_str()}) {
    m_trainingFlags.push_back(option);
    if (mode != RunMode::Train) option->group(kHiddenGroup);
  }
  m_trainingFlags.push_back(command.get_option("--optimizer"));
  m_trainingFlags.push_back(command.get_option("--checkpoint-activations"));
}

void RunFlags::addGenerationFlags(CLI::App& command) {
  const auto [tokens, prompt, goesOn] =
      source.generation.addTo(command, mode == RunMode::Generate ? "--tokens" : "--generate");
  if (mode == RunMode::Generate) {
    tokens->required();
    return;
  }
  old(tokens, "generate MODEL --tokens N");
  for (CLI::Option* option : {prompt, goesOn}) option->group(kHiddenGroup);
}

void RunFlags::addBisectionFlags(CLI::App& command) {
  CLI::Option* other =
      command.add_option("--against", against, "Compare with this plan of the same model instead of an unsplit run")
          ->check(CLI::ExistingFile);
  if (mode == RunMode::Bisect) return;
  other->group(kHiddenGroup);
  old(command.add_flag("--bisect", bisects, "bisect"), "bisect MODEL");
}

CLI::Option* RunFlags::old(CLI::Option* option, const char* instead) {
  return mode == RunMode::Forward ? m_oldFlags.add(option, instead) : option;
}

void RunFlags::addTo(CLI::App& command) {
  addSharedFlags(command);
  const bool isRun = mode == RunMode::Forward;
  if (mode != RunMode::Bisect) addPassFlags(command);
  if (isRun || mode == RunMode::Train) addTrainingFlags(command);
  if (isRun || mode == RunMode::Generate) addGenerationFlags(command);
  if (isRun || mode == RunMode::Bisect) addBisectionFlags(command);
}

RunMode RunFlags::modeOfOldFlags() const {
  if (bisects) return RunMode::Bisect;
  if (source.generation.isAsked()) return RunMode::Generate;
  return training.isAsked() ? RunMode::Train : RunMode::Forward;
}

Result<void> RunFlags::check() {
  if (mode == RunMode::Forward) {
    m_oldFlags.hint("run");
    mode = modeOfOldFlags();
  }
  CLEAVE_TRY_VOID(source.flags.checkNoSettingsWithPlan(source.planFlags));
  training.clipNorm = clipNorm;
  source.isTraining = training.isAsked();
  source.isElsewhere = cluster.isAsked();
  CLEAVE_TRY_VOID(source.check());
  CLEAVE_TRY_VOID(checkTraining());
  CLEAVE_TRY_VOID(checkGeneration());
  CLEAVE_TRY_VOID(checkBisection());
  CLEAVE_TRY_VOID(cluster.check(source.flags.model, !shapes.empty()));
  if (cluster.onlyPrints()) return {};
  CLEAVE_TRY_VOID(checkOutputs(source.flags.filesRead()));
  CLEAVE_TRY_VOID(checkShapes());
  if (json != "-" || timeline != "-") return {};
  return fail(ErrorCode::BadUsage, "--json - and --timeline - both write to standard output: name a file for one.");
}

Result<void> RunFlags::checkTraining() const {
  CLEAVE_TRY_VOID(program::check(training));
  if (training.isAsked() || source.flags.isTraining) return {};
  for (const CLI::Option* option : m_trainingFlags) {
    if (option->count() > 0)
      return fail(ErrorCode::BadUsage, "{} is a flag of cleave-cli train: leave it out, or train with --steps N.",
                  option->get_name());
  }
  return {};
}

Result<void> RunFlags::checkGeneration() const {
  CLEAVE_TRY_VOID(source.generation.check());
  if (mode != RunMode::Generate) return {};
  return exclude({{"--train-steps", training.isAsked()},
                  {"--shapes", !shapes.empty()},
                  {"--mesh", !source.meshText.empty()},
                  {"--timeline", !timeline.empty()},
                  {"--print-command", cluster.onlyPrints()},
                  {"--listen", cluster.isAsked()},
                  {"--train", source.flags.isTraining},
                  {"--batch", source.flags.batch.has_value()},
                  {"--seq", source.flags.sequence.has_value()}},
                 "Generation runs a prompt of its own shape on this machine");
}

Result<void> RunFlags::checkBisection() const {
  if (mode != RunMode::Bisect) {
    if (against.empty()) return {};
    return fail(ErrorCode::BadUsage, "--against is a flag of cleave-cli bisect: leave it out, or bisect.");
  }
  return exclude({{"--train-steps", training.isAsked()},
                  {"--generate", source.generation.isAsked()},
                  {"--expect", !source.expect.empty()},
                  {"--output", !output.empty()},
                  {"--shapes", !shapes.empty()},
                  {"--mesh", !source.meshText.empty()},
                  {"--timeline", !timeline.empty()},
                  {"--no-check", noCheck},
                  {"--print-command", cluster.onlyPrints()},
                  {"--listen", cluster.isAsked()}},
                 "A bisection compares one forward pass on this machine, value by value");
}

Result<void> RunFlags::checkShapes() const {
  if (shapes.empty()) {
    if (!padsToPlanned) return {};
    return fail(ErrorCode::BadUsage, "--pad-to-planned pads the shapes of --shapes: add them.");
  }
  if (source.isPlan())
    return fail(ErrorCode::BadUsage, "--shapes needs a model, not a plan: a plan is made for one shape.");
  if (!source.input.empty() || !source.expect.empty())
    return fail(ErrorCode::BadUsage, "--shapes and --input or --expect exclude each other.");
  return exclude({{"--output", !output.empty()}, {"--timeline", !timeline.empty()}},
                 "Each of the shapes would replace the file of the one before");
}

Result<void> RunFlags::checkOutputs(std::vector<NamedFile> read) const {
  read.insert(read.end(), {{"--expect", source.expect}, {"--input", source.input}});
  return refuseOverwriting({{"--output", output}, {"--json", json}, {"--timeline", timeline}}, read);
}

Result<pipeline::RunRequest> RunFlags::request(std::shared_ptr<const plan::Plan> plan) const {
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

}  // namespace cleave::cli
