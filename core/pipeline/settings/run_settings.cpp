#include "pipeline/settings/run_settings.h"

#include "settings/option_types.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

namespace cleave::pipeline {
namespace {

using namespace settings;  // the words of a table
using spec::RunMode;
using spec::RunSpec;
using RunRows = SettingRows<RunSpec>;

constexpr double kMostSeconds = 86'400;

TextForm<std::chrono::milliseconds> seconds() {
  using Milliseconds = std::chrono::milliseconds;
  const auto number = anyNumber();
  TextForm<Milliseconds> form;
  form.kind = ValueKind::Number;
  form.type = fmt::format("FLOAT [1 - {}]", kMostSeconds);
  form.text = [](Milliseconds value) { return fmt::format("{}", std::chrono::duration<double>(value).count()); };
  form.parse = [number](std::string_view flag, std::string_view text) -> Result<Milliseconds> {
    const auto value = number.parse(flag, text);
    if (value && *value >= 1 && *value <= kMostSeconds) return Milliseconds(std::llround(*value * 1000));
    return wrongValue(flag, text, fmt::format("seconds from 1 to {}", kMostSeconds));
  };
  return form;
}

TextForm<launch::Backend> backendName() {
  return choiceOf<launch::Backend>(
      {"auto", "nccl", "gloo"}, [](launch::Backend backend) { return launch::toText(backend); }, launch::parseBackend);
}

/// A switch that turns off what is on by default.
TextForm<bool> switchOff() {
  TextForm<bool> form = switchForm();
  form.text = [](bool isOn) { return std::string(isOn ? kOff : kOn); };
  form.parse = [on = switchForm()](std::string_view flag, std::string_view text) -> Result<bool> {
    CLEAVE_TRY(const bool isGiven, on.parse(flag, text));
    return !isGiven;
  };
  return form;
}

std::optional<spec::RunShape> parseShape(std::string_view text) {
  spec::RunShape shape;
  const char* const end = text.data() + text.size();
  const auto batch = std::from_chars(text.data(), end, shape.batch);
  if (batch.ec != std::errc() || batch.ptr == end || *batch.ptr != 'x') return std::nullopt;
  const auto sequence = std::from_chars(batch.ptr + 1, end, shape.sequence);
  const bool isGood = sequence.ec == std::errc() && sequence.ptr == end && shape.batch >= 1 && shape.sequence >= 1;
  return isGood ? std::optional(shape) : std::nullopt;
}

/// "2x16,1x64"
TextForm<std::vector<spec::RunShape>> shapeList() {
  using Shapes = std::vector<spec::RunShape>;
  TextForm<Shapes> form;
  form.text = [](const Shapes& shapes) {
    std::string text;
    for (const auto& [batch, sequence] : shapes)
      text += fmt::format("{}{}x{}", text.empty() ? "" : ",", batch, sequence);
    return text;
  };
  form.parse = [](std::string_view flag, std::string_view text) -> Result<Shapes> {
    Shapes shapes;
    for (std::string_view rest = text; !rest.empty() || shapes.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const auto shape = parseShape(rest.substr(0, comma));
      if (!shape) return wrongValue(flag, text, "BATCHxSEQUENCE, several separated by commas, e.g. 2x16,1x64");
      shapes.push_back(*shape);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return shapes;
  };
  return form;
}

/// Flags of every mode.
void addSharedRows(RunRows& rows, RunMode mode) {
  addRow(
      rows,
      {.flag = "--input",
       .help =
           "safetensors with input_ids, labels, attention_mask, token_type_ids; for an exported program, its inputs "
           "by name"},
      [](auto& s) -> auto& { return s.input; }, existingFile());
  addRow(
      rows,
      {.flag = "--expect",
       .help = "safetensors with the expected logits and loss; for an exported program output, or output_0, output_1, "
               "...",
       .isHidden = mode == RunMode::Bisect},
      [](auto& s) -> auto& { return s.expect; }, existingFile());
  addRow(
      rows, {.flag = "--backend", .help = "auto, nccl or gloo"}, [](auto& s) -> auto& { return s.backend; },
      backendName());
  const std::string tolerance =
      "Compare by atol + rtol × |expected| instead of by rounding (default: by rounding, docs/running.md)";
  addRow(
      rows, {.flag = "--rtol", .help = tolerance}, [](auto& s) -> auto& { return s.rtol; }, finiteNumber(0));
  addRow(
      rows, {.flag = "--atol", .help = tolerance}, [](auto& s) -> auto& { return s.atol; }, finiteNumber(0));
  addRow(
      rows, {.flag = "--skip-weights", .help = "Fill all parameters from the seed instead of reading the checkpoint"},
      [](auto& s) -> auto& { return s.skipWeights; }, switchForm());
  addRow(
      rows, {.flag = "--init-missing", .help = "Fill parameters that the checkpoint lacks from the seed"},
      [](auto& s) -> auto& { return s.initMissing; }, switchForm());
  addRow(
      rows,
      {.flag = "--ignore-memory",
       .help = "Start even if the ranks, or the unsplit run they are compared with, are predicted not to fit"},
      [](auto& s) -> auto& { return s.ignoreMemory; }, switchForm());
  addRow(
      rows, {.flag = "--silence", .help = "Fail the run if a rank is silent for this many seconds"},
      [](auto& s) -> auto& { return s.silence; }, seconds());
  addRow(
      rows, {.flag = "--teardown", .help = "End a rank that still runs this many seconds after its result"},
      [](auto& s) -> auto& { return s.teardown; }, seconds());
  addRow(
      rows,
      {.flag = "--collective-timeout",
       .help = "Fail the run when a collective has not completed after this many seconds (default: 600)"},
      [](auto& s) -> auto& { return s.collectiveTimeout; }, wholeSeconds(1, static_cast<std::int64_t>(kMostSeconds)));
}

/// Flags of the modes that run the ranks of one plan once: all but a bisection.
void addPassRows(RunRows& rows, RunMode mode) {
  addRow(
      rows, {.flag = "--output", .help = "Write the outputs as safetensors"}, [](auto& s) -> auto& { return s.output; },
      filePath(option_types::kFile));
  addRow(
      rows, {.flag = "--no-check", .help = "Without --expect: do not compare with an unsplit run"},
      [](auto& s) -> auto& { return s.compareUnsplit; }, switchOff());
  if (mode == RunMode::Generate) return;
  addRow(
      rows,
      {.flag = "--shapes",
       .help = "BATCHxSEQUENCE,…: run these one after the other in the same ranks, which load the weights once"},
      [](auto& s) -> auto& { return s.shapes; }, shapeList());
  addRow(
      rows,
      {.flag = "--pad-to-planned",
       .help = "With --shapes: pad a shape that fits into an earlier one instead of planning it"},
      [](auto& s) -> auto& { return s.padsToPlanned; }, switchForm());
}

void addTrainingRows(RunRows& rows, RunMode mode) {
  const bool isOld = mode != RunMode::Train;
  addRow(
      rows,
      {.flag = isOld ? "--train-steps" : "--steps",
       .help = "Training steps. Outputs are the losses and, as param.NAME, the parameters after the last step",
       .isRequired = !isOld,
       .isHidden = isOld,
       .replacement = "train MODEL --steps N"},
      [](auto& s) -> auto& { return s.training.steps; }, numberWithin(1, program::kMostSteps));
  addRow(
      rows, {.flag = "--lr", .help = "Learning rate", .isHidden = isOld},
      [](auto& s) -> auto& { return s.training.learningRate; }, anyNumber());
  addRow(
      rows, {.flag = "--weight-decay", .help = "Weight decay", .isHidden = isOld},
      [](auto& s) -> auto& { return s.training.weightDecay; }, anyNumber());
  addRow(
      rows,
      {.flag = "--clip-norm",
       .shortName = "clip",
       .help = "Scale gradients down to this norm, over all ranks",
       .isHidden = isOld},
      [](auto& s) -> auto& { return s.training.clipNorm; }, anyNumber());
  addRow(
      rows,
      {.flag = "--accumulate",
       .help = "Micro-batches per step, one after the other in --input, or random",
       .isHidden = isOld},
      [](auto& s) -> auto& { return s.training.accumulate; }, wholeNumber(1, program::kMostSteps));
}

void addGenerationRows(RunRows& rows, RunMode mode) {
  const bool isOld = mode != RunMode::Generate;
  addRow(
      rows,
      {.flag = "--prompt",
       .help = "Token ids: commas between ids, semicolons between rows of one length, such as 1,2,3;4,5,6 (default: "
               "`prompt` or input_ids of --input, or of --expect)",
       .isHidden = isOld},
      [](auto& s) -> auto& { return s.prompt; }, plainText());
  addRow(
      rows,
      {.flag = isOld ? "--generate" : "--tokens",
       .help = "Generate N tokens with greedy decoding and a sharded KV cache",
       .isRequired = !isOld,
       .isHidden = isOld,
       .replacement = "generate MODEL --tokens N"},
      [](auto& s) -> auto& { return s.generation.tokens; }, numberWithin(1, program::kMostNewTokens));
  addRow(
      rows, {.flag = "--ignore-end-token", .help = "Do not stop a row at the model's end tokens", .isHidden = isOld},
      [](auto& s) -> auto& { return s.ignoresEndToken; }, switchForm());
}

void addBisectionRows(RunRows& rows, RunMode mode) {
  addRow(
      rows,
      {.flag = "--against",
       .help = "Compare with this plan of the same model instead of an unsplit run",
       .isHidden = mode != RunMode::Bisect},
      [](auto& s) -> auto& { return s.against; }, existingFile());
}

RunRows rowsOf(RunMode mode) {
  RunRows rows;
  addSharedRows(rows, mode);
  const bool isRun = mode == RunMode::Forward || mode == RunMode::Shapes;
  if (mode != RunMode::Bisect) addPassRows(rows, mode);
  if (isRun || mode == RunMode::Train) addTrainingRows(rows, mode);
  if (isRun || mode == RunMode::Generate) addGenerationRows(rows, mode);
  if (isRun || mode == RunMode::Bisect) addBisectionRows(rows, mode);
  return rows;
}

}  // namespace

const SettingRows<RunSpec>& runSettings(RunMode mode) {
  static const std::map<RunMode, RunRows> rows = [] {
    std::map<RunMode, RunRows> made;
    for (const RunMode each : spec::kRunModes) made.emplace(each, rowsOf(each));
    return made;
  }();
  return rows.at(mode);
}

}  // namespace cleave::pipeline
