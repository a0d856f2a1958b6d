#include "pipeline/settings/plan_settings.h"

#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "pipeline/source/source_files.h"
#include "settings/option_types.h"

namespace cleave::pipeline {
namespace {

using namespace settings;  // the words of a table

using PlanRows = SettingRows<PlanSettings>;

/// "s70=16"
TextForm<formats::SymbolSizes::value_type> symbolSize() {
  using Pair = formats::SymbolSizes::value_type;
  TextForm<Pair> form;
  form.text = [](const Pair& size) { return fmt::format("{}={}", size.first, size.second); };
  form.parse = [](std::string_view flag, std::string_view text) -> Result<Pair> {
    const std::size_t equals = text.find('=');
    const auto number = wholeNumber(0, spec::kMostPositions);
    const auto size =
        equals == std::string_view::npos ? tl::unexpected<Error>(Error{}) : number.parse(flag, text.substr(equals + 1));
    if (!size || *size < 0) return wrongValue(flag, text, "a symbol and its size, such as s70=16");
    return Pair(std::string(text.substr(0, equals)), *size);
  };
  return form;
}

TextForm<graph::DType> elementType() {
  TextForm<graph::DType> form;
  form.text = [](graph::DType type) { return std::string(graph::toText(type)); };
  form.parse = [](std::string_view flag, std::string_view text) -> Result<graph::DType> {
    if (const auto type = graph::parseDType(text)) return *type;
    return wrongValue(flag, text, "float32, bfloat16, float16 or float64");
  };
  return form;
}

TextForm<solve::Pin> pinText() {
  TextForm<solve::Pin> form;
  form.text = [](const solve::Pin& pin) { return pin.text; };
  form.parse = [](std::string_view, std::string_view text) { return solve::Pin::parse(text); };
  return form;
}

TextForm<double> slackPercent() {
  auto form =
      realNumber(0, solve::kMostSlackPercent,
                 fmt::format("a percentage from 0 to {}, such as 0.5", solve::kMostSlackPercent), solve::parseSlack);
  form.unit = "%";
  return form;
}

/// Ranks, engine, candidates and sequence parallelism.
void addSearchRows(PlanRows& rows) {
  addRow(
      rows, {.flag = "--ranks", .help = "World size", .isAlwaysWritten = true, .isPreference = true},
      [](auto& s) -> auto& { return s.plan.ranks; }, smallNumber(1, spec::kMaxRanks));
  addRow(
      rows,
      {.flag = "--engine",
       .help = "Search engine: optimal (proved best plan by time and memory), reference (Optimum's search) or learning "
               "(the answer of reference with fewer tries)",
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.engine; },
      choiceOf<solve::Engine>(
          {"optimal", "reference", "learning"}, [](solve::Engine engine) { return solve::toText(engine); },
          solve::parseEngine));
  addRow(
      rows,
      {.flag = "--candidates",
       .alias = "--menu",
       .help = "Candidate set of the layers (default: the engine's)",
       .label = "&Candidates",
       .caption = "the engine's default (reference: optimum, others: full)",
       .wordTexts = {"optimum: the reference's placements", "full: all placements and strategies"},
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.candidateSet; },
      choiceOf<rules::CandidateSet>(
          {"optimum", "full"}, [](rules::CandidateSet set) { return rules::toText(set); }, rules::parseCandidateSet));
  addRow(
      rows,
      {.flag = "--sequence-parallel",
       .help = "Split the sequence between layers: on, off or auto",
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.sequenceParallel; },
      choiceOf<rules::SequenceParallel>(
          {"on", "off", "auto"}, [](rules::SequenceParallel mode) { return rules::toText(mode); },
          rules::parseSequenceParallel));
}

void addInputRows(PlanRows& rows) {
  addRow(
      rows, {.flag = "--batch", .help = "Batch size (default: the input's, else 1)"},
      [](auto& s) -> auto& { return s.input.batch; }, wholeNumber(1, spec::kMostPositions));
  addRow(
      rows,
      {.flag = "--seq", .help = "Sequence length (default: the input's, else 128 or the model's positions if fewer)"},
      [](auto& s) -> auto& { return s.input.sequence; }, wholeNumber(1, spec::kMostPositions));
  addRow(
      rows,
      {.flag = "--size",
       .help = "NAME=N: size of a symbol of an exported program (info lists them; --batch and --seq set the first two "
               "dimensions of its inputs); repeatable"},
      [](auto& s) -> auto& { return s.input.sizes; }, symbolSize());
  addRow(
      rows,
      {.flag = "--weights",
       .help = "safetensors file or folder with the weights that the archive of an exported program lacks"},
      [](auto& s) -> auto& { return s.input.weights; }, pathText(option_types::kFileOrFolder));
  addRow(
      rows, {.flag = "--dtype", .help = "Element type, e.g. float32, bfloat16 (default: the config's)"},
      [](auto& s) -> auto& { return s.input.dtype; }, elementType());
  addRow(
      rows, {.flag = "--mask", .help = "Plan with an attention_mask input: on or off"},
      [](auto& s) -> auto& { return s.input.mask; }, onOff());
  addRow(
      rows, {.flag = "--token-types", .help = "Plan with a token_type_ids input: on or off"},
      [](auto& s) -> auto& { return s.input.tokenTypes; }, onOff());
  addRow(
      rows, {.flag = "--loss", .help = "Plan with labels and loss: on or off"},
      [](auto& s) -> auto& { return s.input.loss; }, onOff());
  addRow(
      rows, {.flag = "--logits-to-keep", .help = "Compute logits for the last K positions only (0: all)"},
      [](auto& s) -> auto& { return s.input.logitsToKeep; }, wholeNumber(0, spec::kMostPositions));
  addRow(
      rows, {.flag = "--seed", .help = "Seed of random inputs and initial values"},
      [](auto& s) -> auto& { return s.plan.seed; }, seedNumber());
  addRow(
      rows,
      {.flag = "--freeze",
       .help = "Parameters that training does not change, by name; * matches; repeatable. Buffers and parameters with "
               "requires_grad=False are always frozen"},
      [](auto& s) -> auto& { return s.input.freezing.freeze; }, plainText());
  addRow(
      rows, {.flag = "--train-only", .help = "Train only these parameters, by name; * matches; repeatable"},
      [](auto& s) -> auto& { return s.input.freezing.trainOnly; }, plainText());
}

void addDemandRows(PlanRows& rows) {
  addRow(
      rows,
      {.flag = "--pin",
       .help =
           fmt::format("NAME=PLACEMENT (R, S(0), S(1), ...) or LAYER=STRATEGY ({}); == allows only this strategy; != "
                       "forbids it; * matches; repeatable",
                       solve::strategyWords())},
      [](auto& s) -> auto& { return s.plan.pins; }, pinText());
  addRow(
      rows,
      {.flag = "--rule-off",
       .help = "Switch off the rule of an operator, so that its inputs are replicated (aten::mul.Tensor; * matches); "
               "repeatable",
       .label = "Rules o&ff",
       .caption = "operators, as aten::mul.Tensor, *embedding*",
       .tip = "Operators whose rules are switched off. They accept replicated operands only. Solves at once.",
       .solvesAtOnce = true},
      [](auto& s) -> auto& { return s.plan.rulesOff; }, plainText());
  addRow(
      rows,
      {.flag = "--redistribute",
       .help = "Allow a value to change its placement after it is computed (NAME; * matches); repeatable",
       .label = "Red&istribute",
       .caption = "values, as add_3, linear_*",
       .tip = "Values that may be redistributed after they are computed, by an all-gather or a slice. Solves at once.",
       .solvesAtOnce = true},
      [](auto& s) -> auto& { return s.plan.redistributable; }, plainText());
}

void addTrainingRows(PlanRows& rows) {
  addRow(
      rows,
      {.flag = "--train",
       .help = "Plan a training step: backward pass, gradients, optimizer states",
       .label = "&Training",
       .caption = "Plan for a training step: forward, backward, optimizer",
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.cost.isTraining; }, switchForm());
  addRow(
      rows,
      {.flag = "--checkpoint-activations",
       .shortName = "checkpoint",
       .help = "In training, save only the inputs of each block and recompute it in the backward pass",
       .label = "Chec&kpoints",
       .caption = "Save only block inputs and recompute the rest in the backward pass",
       .isOfTraining = true,
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.cost.checkpointsActivations; }, switchForm());
  addRow(
      rows,
      {.flag = "--dropout",
       .help = "In training, apply the dropout of the folder's config.json, as model.train() of transformers does",
       .label = "Dro&pout",
       .caption = "Train with the dropout of config.json",
       .isOfTraining = true,
       .isOfFolders = true,
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.dropout; }, onOff());
  addRow(
      rows,
      {.flag = "--optimizer",
       .help = "Optimizer of training: none, sgd, momentum or adamw",
       .label = "&Optimizer",
       .isOfTraining = true,
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.cost.optimizer; },
      choiceOf<solve::Optimizer>(
          {"none", "sgd", "momentum", "adamw"}, [](solve::Optimizer optimizer) { return program::toText(optimizer); },
          program::parseOptimizer));
}

void addCostRows(PlanRows& rows) {
  addRow(
      rows,
      {.flag = "--device-profile",
       .shortName = "profile",
       .help = "Device to plan for: name of a bundled profile, JSON file, or a plan or session file with a device",
       .label = "&Device",
       .isPreference = true},
      [](auto& s) -> auto& { return s.device; }, deviceName());
  addRow(
      rows,
      {.flag = "--memory-budget",
       .shortName = "budget",
       .help = "Memory budget per rank, such as 40GiB (default: the device's memory)",
       .label = "Memory per &rank",
       .caption = "at most",
       .tip = "Off: the whole device memory. Only the engine optimal uses the budget.",
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.cost.memoryBudget; }, byteSize());
  addRow(
      rows,
      {.flag = "--slack",
       .help =
           "Percentage by which a step may be slower than the fastest to save memory; optimal chooses the plan with "
           "the least memory among those (0: the fastest)",
       .label = "S&lack",
       .tip = "Allowed slowdown of a step, in percent, to reduce memory per rank. 0: the fastest plan. Only the engine "
              "optimal uses it.",
       .isPreference = true},
      [](auto& s) -> auto& { return s.plan.cost.slackPercent; }, slackPercent());
}

}  // namespace

const settings::SettingRows<PlanSettings>& planSettings() {
  static const PlanRows rows = [] {
    PlanRows made;
    addSearchRows(made);
    addInputRows(made);
    addDemandRows(made);
    addTrainingRows(made);
    addCostRows(made);
    return made;
  }();
  return rows;
}

PlanSettings PlanSettings::of(std::string model, spec::InputSpec input, spec::PlanSpec plan, std::string deviceFile) {
  std::string device = deviceFile.empty() ? plan.cost.profile.name : std::move(deviceFile);
  return {std::move(model), std::move(input), std::move(plan), std::move(device)};
}

Result<void> PlanSettings::settle() {
  CLEAVE_TRY(plan.cost.profile, deviceProfile(device));
  if (plan.dropout && !plan.cost.isTraining) {
    return fail(ErrorCode::BadUsage,
                "--dropout on applies to training: add --train, use cleave-cli train, or leave it out.");
  }
  input.dropout = plan.dropsOut();
  return {};
}

std::vector<NamedFile> PlanSettings::filesRead() const {
  std::vector<NamedFile> files = sourceFilesOf(model);
  const auto beside = weightFilesOf(input.weights);
  files.insert(files.end(), beside.begin(), beside.end());
  const auto bundled = deviceProfiles();
  const bool isBundled = bundled && std::ranges::find(*bundled, device, &solve::DeviceProfile::name) != bundled->end();
  if (!isBundled) files.push_back({"--device-profile", device});
  return files;
}

std::vector<std::string> flagsOf(PlanSettings asked) {
  asked.plan.dropout = asked.plan.dropsOut();
  asked.plan.cost.checkpointsActivations &= asked.plan.cost.isTraining;
  return settings::argumentsOf(planSettings(), asked);
}

std::vector<std::string> argumentsOf(const PlanSettings& asked) {
  std::vector<std::string> words = flagsOf(asked);
  words.insert(words.begin(), asked.model);
  return words;
}

Result<PlanSettings> readPlanArguments(std::string model, const std::vector<std::string>& words) {
  PlanSettings read;
  read.model = std::move(model);
  CLEAVE_TRY_VOID(settings::readArguments(planSettings(), words, read));
  return read;
}

Result<Planned> planModel(PlanSettings asked, bool records, const Progress& progress) {
  CLEAVE_TRY_VOID(asked.settle());
  Planned planned;
  CLEAVE_TRY(planned.model, openModel(asked.model, asked.input, progress));
  CLEAVE_TRY(planned.solved, solveModel(planned.model, asked.plan, progress, {.records = records}));
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
