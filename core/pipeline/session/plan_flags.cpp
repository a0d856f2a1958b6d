#include "pipeline/session/plan_flags.h"

#include "base/quantities.h"
#include "pipeline/session/option_types.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "pipeline/source/plan_file.h"
#include "pipeline/source/source_files.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

namespace cleave::pipeline {
namespace {

Result<bool> onOff(const std::string& flag, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return fail(ErrorCode::BadUsage, "{} is \"{}\": write on or off.", flag, text);
}

std::string onOff(bool isOn) { return isOn ? "on" : "off"; }

}  // namespace

PlanFlags PlanFlags::of(const std::string& model, const torch_capture::CaptureOptions& capture,
                        const SolveOptions& solve, const std::string& device) {
  PlanFlags flags;
  flags.model = model;
  flags.ranks = solve.ranks;
  flags.engine = solve::toText(solve.engine);
  if (solve.candidateSet) flags.candidateSet = rules::toText(*solve.candidateSet);
  flags.sequenceParallel = rules::toText(solve.sequenceParallel);
  const bool isAsked = capture.asked != formats::AskedSizes();
  if (!isAsked) flags.batch = capture.batch;
  if (!isAsked) flags.sequence = capture.sequence;
  if (capture.asked.batch > 0) flags.batch = capture.asked.batch;
  if (capture.asked.sequence > 0) flags.sequence = capture.asked.sequence;
  for (const auto& [symbol, size] : capture.asked.symbols) flags.sizes.push_back(fmt::format("{}={}", symbol, size));
  flags.weights = capture.weights;
  flags.logitsToKeep = capture.logitsToKeep;
  if (capture.dtype) flags.dtype = graph::toText(*capture.dtype);
  flags.mask = onOff(capture.mask);
  flags.tokenTypes = onOff(capture.tokenTypes);
  flags.loss = onOff(capture.loss);
  flags.dropout = onOff(solve.dropsOut());
  flags.seed = solve.seed;
  flags.freeze = capture.freezing.freeze;
  flags.trainOnly = capture.freezing.trainOnly;
  for (const solve::Pin& pin : solve.pins) flags.pins.push_back(pin.text);
  flags.rulesOff = solve.rulesOff;
  flags.redistributable = solve.redistributable;
  flags.isTraining = solve.cost.isTraining;
  flags.optimizer = solve::toText(solve.cost.optimizer);
  flags.checkpointsActivations = solve.cost.checkpointsActivations;
  flags.device = device.empty() ? solve.cost.profile.name : device;
  if (solve.cost.memoryBudget) flags.memoryBudget = std::to_string(*solve.cost.memoryBudget);
  flags.slack = fmt::format("{}", solve.cost.slackPercent);
  return flags;
}

std::vector<std::string> PlanFlags::arguments() const {
  static const PlanFlags kDefaults;
  static const torch_capture::CaptureOptions kCapture;
  std::vector<std::string> words{model, "--ranks", std::to_string(ranks)};
  const auto add = [&](const char* flag, const std::string& value, const std::string& byDefault) {
    if (value != byDefault) words.insert(words.end(), {flag, value});
  };
  const auto addAll = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {flag, value});
  };
  add("--engine", engine, kDefaults.engine);
  add("--candidates", candidateSet, kDefaults.candidateSet);
  add("--sequence-parallel", sequenceParallel, kDefaults.sequenceParallel);
  if (batch) add("--batch", std::to_string(*batch), std::to_string(kCapture.batch));
  if (sequence) add("--seq", std::to_string(*sequence), std::to_string(kCapture.sequence));
  addAll("--size", sizes);
  add("--weights", weights, kDefaults.weights);
  add("--dtype", dtype, kDefaults.dtype);
  add("--mask", mask, kDefaults.mask);
  add("--token-types", tokenTypes, kDefaults.tokenTypes);
  add("--loss", loss, kDefaults.loss);
  add("--logits-to-keep", std::to_string(logitsToKeep), std::to_string(kDefaults.logitsToKeep));
  add("--seed", std::to_string(seed), std::to_string(kDefaults.seed));
  addAll("--freeze", freeze);
  addAll("--train-only", trainOnly);
  addAll("--pin", pins);
  addAll("--rule-off", rulesOff);
  addAll("--redistribute", redistributable);
  if (isTraining) words.emplace_back("--train");
  if (isTraining && checkpointsActivations) words.emplace_back("--checkpoint-activations");
  add("--dropout", dropout, kDefaults.dropout);
  add("--optimizer", optimizer, kDefaults.optimizer);
  add("--device-profile", device, kDefaults.device);
  add("--memory-budget", memoryBudget, kDefaults.memoryBudget);
  add("--slack", slack, kDefaults.slack);
  return words;
}

std::vector<const CLI::Option*> PlanFlags::addTo(CLI::App& command) {
  command.add_option("MODEL", model, "Model folder, config.json, exported program (.pt2) or Hub id (org/name)")
      ->type_name(option_types::kModel)
      ->required();
  const std::size_t before = command.get_options().size();
  command.add_option("--ranks", ranks, "World size")->capture_default_str();
  command
      .add_option("--engine", engine,
                  "Search engine: optimal (proved best plan by time and memory), reference (Optimum's search) or "
                  "learning (the answer of reference with fewer tries)")
      ->type_name(option_types::oneOf({"optimal", "reference", "learning"}))
      ->capture_default_str();
  command.add_option("--candidates,--menu", candidateSet, "Candidate set of the layers (default: the engine's)")
      ->type_name(option_types::oneOf({"optimum", "full"}));
  command.add_option("--sequence-parallel", sequenceParallel, "Split the sequence between layers: on, off or auto")
      ->type_name(option_types::oneOf({"on", "off", "auto"}))
      ->capture_default_str();
  command.add_option("--batch", batch, "Batch size (default: the input's, else 1)");
  command.add_option("--seq", sequence,
                     "Sequence length (default: the input's, else 128 or the model's positions if fewer)");
  command
      .add_option(
          "--size", sizes,
          "NAME=N: size of a symbol of an exported program (info lists them; --batch and --seq set the first two "
          "dimensions of its inputs); repeatable")
      ->take_all();
  command
      .add_option("--weights", weights,
                  "safetensors file or folder with the weights that the archive of an exported program lacks")
      ->type_name(option_types::kFileOrFolder);
  command.add_option("--dtype", dtype, "Element type, e.g. float32, bfloat16 (default: the config's)");
  command.add_option("--mask", mask, "Plan with an attention_mask input: on or off")
      ->type_name(option_types::oneOf({"on", "off"}))
      ->capture_default_str();
  command.add_option("--token-types", tokenTypes, "Plan with a token_type_ids input: on or off")
      ->type_name(option_types::oneOf({"on", "off"}))
      ->capture_default_str();
  command.add_option("--loss", loss, "Plan with labels and loss: on or off")
      ->type_name(option_types::oneOf({"on", "off"}))
      ->capture_default_str();
  command.add_option("--logits-to-keep", logitsToKeep, "Compute logits for the last K positions only (0: all)")
      ->capture_default_str();
  command.add_option("--seed", seed, "Seed of random inputs and initial values")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--freeze", freeze,
                  "Parameters that training does not change, by name; * matches; repeatable. Buffers and parameters "
                  "with requires_grad=False are always frozen")
      ->take_all();
  command.add_option("--train-only", trainOnly, "Train only these parameters, by name; * matches; repeatable")
      ->take_all();
  command
      .add_option("--pin", pins,
                  fmt::format("NAME=PLACEMENT (R, S(0), S(1), ...) or LAYER=STRATEGY ({}); == allows only this "
                              "strategy; != forbids it; * matches; repeatable",
                              solve::strategyWords()))
      ->take_all();
  command
      .add_option(
          "--rule-off", rulesOff,
          "Switch off the rule of an operator, so that its inputs are replicated (aten::mul.Tensor; * matches); "
          "repeatable")
      ->take_all();
  command
      .add_option("--redistribute", redistributable,
                  "Allow a value to change its placement after it is computed (NAME; * matches); repeatable")
      ->take_all();
  command.add_flag("--train", isTraining, "Plan a training step: backward pass, gradients, optimizer states");
  command.add_flag("--checkpoint-activations", checkpointsActivations,
                   "In training, save only the inputs of each block and recompute it in the backward pass");
  command
      .add_option("--dropout", dropout,
                  "In training, apply the dropout of the folder's config.json, as model.train() of transformers does")
      ->type_name(option_types::oneOf({"on", "off"}))
      ->capture_default_str();
  command.add_option("--optimizer", optimizer, "Optimizer of training: none, sgd, momentum or adamw")
      ->type_name(option_types::oneOf({"none", "sgd", "momentum", "adamw"}))
      ->capture_default_str();
  command
      .add_option("--device-profile", device,
                  "Device to plan for: name of a bundled profile, JSON file, or a plan or session file with a device")
      ->type_name("NAME|.json")
      ->capture_default_str();
  command.add_option("--memory-budget", memoryBudget,
                     "Memory budget per rank, such as 40GiB (default: the device's memory)");
  command
      .add_option("--slack", slack,
                  "Percentage by which a step may be slower than the fastest to save memory; optimal chooses the plan "
                  "with the least memory among those (0: the fastest)")
      ->capture_default_str();
  const auto added = command.get_options();
  return {added.begin() + static_cast<std::ptrdiff_t>(before), added.end()};
}

Result<void> PlanFlags::checkNoSettingsWithPlan(const std::vector<const CLI::Option*>& options) const {
  if (!isPlanFile(model)) return {};
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    return fail(ErrorCode::BadUsage,
                "{} is a plan, and {} is a setting of a new plan. Leave it out, or name the model instead of the plan.",
                model, option->get_name());
  }
  return {};
}

std::vector<NamedFile> PlanFlags::filesRead() const {
  std::vector<NamedFile> files = sourceFilesOf(model);
  const auto beside = weightFilesOf(weights);
  files.insert(files.end(), beside.begin(), beside.end());
  const auto bundled = deviceProfiles();
  const bool isBundled = bundled && std::any_of(bundled->begin(), bundled->end(),
                                                [&](const auto& profile) { return profile.name == device; });
  if (!isBundled) files.push_back({"--device-profile", device});
  return files;
}

Result<torch_capture::CaptureOptions> PlanFlags::captureOptions() const {
  torch_capture::CaptureOptions options;
  options.batch = batch.value_or(options.batch);
  options.sequence = sequence.value_or(options.sequence);
  options.cutsSequence = !sequence;
  options.logitsToKeep = logitsToKeep;
  options.cacheUse = cacheUse;
  options.cachePositions = cachePositions;
  CLEAVE_TRY(options.asked, askedSizes());
  if (!weights.empty()) options.weights = fs::absolute(weights).lexically_normal().string();
  CLEAVE_TRY(options.mask, onOff("--mask", mask));
  CLEAVE_TRY(options.tokenTypes, onOff("--token-types", tokenTypes));
  CLEAVE_TRY(options.loss, onOff("--loss", loss));
  CLEAVE_TRY(options.dropout, wantsDropout());
  options.freezing = {freeze, trainOnly};
  if (!dtype.empty()) {
    options.dtype = graph::parseDType(dtype);
    if (!options.dtype)
      return fail(ErrorCode::BadUsage, "--dtype is \"{}\": write float32, bfloat16, float16 or float64.", dtype);
  }
  return options;
}

Result<bool> PlanFlags::wantsDropout() const {
  CLEAVE_TRY(const bool isOn, onOff("--dropout", dropout));
  if (!isOn || isTraining) return isOn;
  return fail(ErrorCode::BadUsage,
              "--dropout on applies to training: add --train, use cleave-cli train, or leave it out.");
}

Result<formats::AskedSizes> PlanFlags::askedSizes() const {
  formats::AskedSizes asked;
  asked.batch = batch.value_or(0);
  asked.sequence = sequence.value_or(0);
  for (const std::string& text : sizes) {
    const std::size_t equals = text.find('=');
    std::int64_t size = 0;
    const char* const end = text.data() + text.size();
    const char* const start = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, error] = std::from_chars(start, end, size);
    if (error != std::errc() || stop != end || size < 0)
      return fail(ErrorCode::BadUsage, "--size is \"{}\": write a symbol and its size, such as s70=16.", text);
    asked.symbols[text.substr(0, equals)] = size;
  }
  return asked;
}

Result<solve::CostSettings> PlanFlags::costSettings() const {
  solve::CostSettings settings;
  CLEAVE_TRY(settings.profile, deviceProfile(device));
  settings.isTraining = isTraining;
  settings.checkpointsActivations = checkpointsActivations;
  const auto parsed = solve::parseOptimizer(optimizer);
  if (!parsed)
    return fail(ErrorCode::BadUsage, "--optimizer is \"{}\": write none, sgd, momentum or adamw.", optimizer);
  settings.optimizer = *parsed;
  if (!memoryBudget.empty()) {
    settings.memoryBudget = parseBytes(memoryBudget);
    if (!settings.memoryBudget)
      return fail(ErrorCode::BadUsage, "--memory-budget is \"{}\": write a size such as 40GiB or 42949672960.",
                  memoryBudget);
  }
  const auto percent = solve::parseSlack(slack);
  if (!percent) {
    return fail(ErrorCode::BadUsage, "--slack is \"{}\": write a percentage from 0 to {}, such as 0.5.", slack,
                solve::kMostSlackPercent);
  }
  settings.slackPercent = *percent;
  return settings;
}

Result<SolveOptions> PlanFlags::solveOptions() const {
  SolveOptions options;
  options.ranks = ranks;
  options.seed = seed;
  const auto parsedEngine = solve::parseEngine(engine);
  if (!parsedEngine)
    return fail(ErrorCode::BadUsage, "--engine is \"{}\": write reference, learning or optimal.", engine);
  options.engine = *parsedEngine;
  options.candidateSet = rules::parseCandidateSet(candidateSet);
  if (!candidateSet.empty() && !options.candidateSet)
    return fail(ErrorCode::BadUsage, "--candidates is \"{}\": write optimum or full.", candidateSet);
  const auto mode = rules::parseSequenceParallel(sequenceParallel);
  if (!mode)
    return fail(ErrorCode::BadUsage, "--sequence-parallel is \"{}\": write on, off or auto.", sequenceParallel);
  options.sequenceParallel = *mode;
  options.rulesOff = rulesOff;
  options.redistributable = redistributable;
  CLEAVE_TRY(options.cost, costSettings());
  CLEAVE_TRY(options.trainsWithDropout, wantsDropout());
  for (const std::string& text : pins) {
    CLEAVE_TRY(auto pin, solve::Pin::parse(text));
    options.pins.push_back(std::move(pin));
  }
  return options;
}

Result<Planned> planModel(const PlanFlags& flags, bool record, const Progress& progress) {
  CLEAVE_TRY(const auto captureOptions, flags.captureOptions());
  CLEAVE_TRY(auto solveOptions, flags.solveOptions());
  solveOptions.record = record;
  Planned planned;
  CLEAVE_TRY(planned.model, openModel(flags.model, captureOptions, progress));
  CLEAVE_TRY(planned.solved, solveModel(planned.model, solveOptions, progress));
  auto plan = planModel(planned.model, planned.solved, progress);
  if (plan) {
    planned.plan = *plan;
  } else if (plan.error().code == ErrorCode::Negative) {
    planned.planError = plan.error();
  } else {
    return tl::unexpected(plan.error());
  }
  return planned;
}

}  // namespace cleave::pipeline
