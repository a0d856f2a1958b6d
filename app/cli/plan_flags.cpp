#include "cli/plan_flags.h"

#include "base/quantities.h"

namespace cleave::cli {
namespace {

constexpr std::int64_t kMaxPlanBytes = 1ll << 30;

Result<bool> onOff(const std::string& flag, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return fail(ErrorCode::BadUsage, "{} is \"{}\": write on or off.", flag, text);
}

}  // namespace

void PlanFlags::addTo(CLI::App& command) {
  command.add_option("MODEL", model, "Model folder or config.json")->required();
  command.add_option("--ranks", ranks, "World size")->capture_default_str();
  command.add_option("--engine", engine, "Search engine: optimal (the best plan by time and memory, proved), reference (Optimum's search) or learning (the same answer, fewer tries)")->capture_default_str();
  command.add_option("--menu", menu, "Candidates layers offer: optimum or full (default: the engine's)");
  command.add_option("--sequence-parallel", sequenceParallel, "on, off or auto")->capture_default_str();
  command.add_option("--batch", batch, "Batch size (default 1, or the input's)");
  command.add_option("--seq", sequence, "Sequence length (default 128, or the input's)");
  command.add_option("--dtype", dtype, "Element type, e.g. float32, bfloat16 (default: the config's)");
  command.add_option("--mask", mask, "Plan with an attention_mask input: on or off")->capture_default_str();
  command.add_option("--loss", loss, "Plan with labels and loss: on or off")->capture_default_str();
  command.add_option("--logits-to-keep", logitsToKeep, "Logits of the last K positions only (0: all)")->capture_default_str();
  command.add_option("--seed", seed, "Seed of random inputs and initial values")->capture_default_str();
  command.add_option("--pin", pins, "NAME=PLACEMENT or SCOPE=column|row|vocab|expert|replicated; == that form alone; != forbids; * matches; repeatable")
      ->take_all();
  command.add_option("--rule-off", rulesOff, "Switch the rule of an operator off: it wants whole inputs (aten::mul.Tensor; * matches); repeatable")
      ->take_all();
  command.add_option("--redistribute", redistributable, "Let a value change its placement after it is computed (NAME; * matches); repeatable")
      ->take_all();
  command.add_flag("--train", isTraining, "Cost of a training step: backward, gradients, optimizer states");
  command.add_option("--optimizer", optimizer, "With --train: none, sgd, momentum or adamw")->capture_default_str();
  command.add_option("--device-profile", device, "Device that costs are for: a bundled profile's name or a JSON file")->capture_default_str();
  command.add_option("--memory-budget", memoryBudget, "Most memory of one rank, such as 40GiB (default: the device's)");
  command
      .add_option("--slack", slack,
                  "Per cent that a step may take longer than the fastest if a rank then holds less: optimal answers the plan that holds least "
                  "of those (0: the fastest)")
      ->capture_default_str();
}

Result<torch_capture::CaptureOptions> PlanFlags::captureOptions() const {
  torch_capture::CaptureOptions options;
  options.batch = batch.value_or(options.batch);
  options.sequence = sequence.value_or(options.sequence);
  options.logitsToKeep = logitsToKeep;
  CLEAVE_TRY(options.mask, onOff("--mask", mask));
  CLEAVE_TRY(options.loss, onOff("--loss", loss));
  if (!dtype.empty()) {
    options.dtype = graph::parseDType(dtype);
    if (!options.dtype) return fail(ErrorCode::BadUsage, "--dtype is \"{}\": write float32, bfloat16, float16 or float64.", dtype);
  }
  return options;
}

Result<solve::CostSettings> PlanFlags::costSettings() const {
  solve::CostSettings settings;
  CLEAVE_TRY(settings.profile, pipeline::deviceProfile(device));
  settings.isTraining = isTraining;
  const auto parsed = solve::parseOptimizer(optimizer);
  if (!parsed) return fail(ErrorCode::BadUsage, "--optimizer is \"{}\": write none, sgd, momentum or adamw.", optimizer);
  settings.optimizer = *parsed;
  if (!memoryBudget.empty()) {
    settings.memoryBudget = parseBytes(memoryBudget);
    if (!settings.memoryBudget) return fail(ErrorCode::BadUsage, "--memory-budget is \"{}\": write a size such as 40GiB or 42949672960.", memoryBudget);
  }
  const auto percent = solve::parseSlack(slack);
  if (!percent) {
    return fail(ErrorCode::BadUsage, "--slack is \"{}\": write per cent, a number from 0 to {}, such as 0.5.", slack, solve::kMostSlackPercent);
  }
  settings.slackPercent = *percent;
  return settings;
}

Result<pipeline::SolveOptions> PlanFlags::solveOptions() const {
  pipeline::SolveOptions options;
  options.ranks = ranks;
  options.seed = seed;
  const auto parsedEngine = solve::parseEngine(engine);
  if (!parsedEngine) return fail(ErrorCode::BadUsage, "--engine is \"{}\": write reference, learning or optimal.", engine);
  options.engine = *parsedEngine;
  options.menu = rules::parseMenu(menu);
  if (!menu.empty() && !options.menu) return fail(ErrorCode::BadUsage, "--menu is \"{}\": write optimum or full.", menu);
  const auto mode = rules::parseSequenceParallel(sequenceParallel);
  if (!mode) return fail(ErrorCode::BadUsage, "--sequence-parallel is \"{}\": write on, off or auto.", sequenceParallel);
  options.sequenceParallel = *mode;
  options.rulesOff = rulesOff;
  options.redistributable = redistributable;
  CLEAVE_TRY(options.cost, costSettings());
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
  CLEAVE_TRY(planned.model, pipeline::openModel(flags.model, captureOptions, progress));
  CLEAVE_TRY(planned.solved, pipeline::solveModel(planned.model, solveOptions, progress));
  auto plan = pipeline::planModel(planned.model, planned.solved);
  if (plan) {
    planned.plan = *plan;
  } else if (plan.error().code == ErrorCode::Negative) {
    planned.planError = plan.error();
  } else {
    return tl::unexpected(plan.error());
  }
  return planned;
}

bool isPlanFile(const std::string& path) {
  const fs::path file(path);
  std::error_code ignored;
  return file.extension() == ".json" && file.filename() != "config.json" && !fs::is_directory(file, ignored);
}

Result<std::shared_ptr<const plan::Plan>> readPlanFile(const std::string& path) {
  CLEAVE_TRY(const std::string text, readTextFile(path, kMaxPlanBytes));
  CLEAVE_TRY(auto plan, withContext(plan::planFromJson(text), path));
  return std::make_shared<const plan::Plan>(std::move(plan));
}

}  // namespace cleave::cli
