#include "spec/rank/rank_settings.h"

#include "program/mesh.h"
#include "settings/option_types.h"

#include <fmt/ranges.h>

#include <cinttypes>
#include <cstdio>

namespace cleave::spec {
namespace {

using namespace settings;  // the words of a table
using RankRows = SettingRows<RankSpec>;

constexpr std::int64_t kMostSeconds = 86'400, kMostPasses = 1'000'000;

/// "plan.json", "2x16:plan.json"
TextForm<RankPlan> planWithRows() {
  TextForm<RankPlan> form;
  form.type = option_types::kPlan;
  form.text = [](const RankPlan& plan) {
    return plan.rows.areAll() ? plan.file.string()
                              : fmt::format("{}x{}:{}", plan.rows.batch, plan.rows.sequence, plan.file.string());
  };
  form.parse = [](std::string_view, std::string_view given) -> Result<RankPlan> {
    const std::string text(given);
    Rows rows;
    int read = 0;
    if (std::sscanf(text.c_str(), "%" SCNd64 "x%" SCNd64 ":%n", &rows.batch, &rows.sequence, &read) == 2 && read > 0 &&
        rows.batch > 0 && rows.sequence > 0)
      return RankPlan{text.substr(static_cast<std::size_t>(read)), rows};
    return RankPlan{text};
  };
  return form;
}

TextForm<std::string> backendName() {
  return choiceOf<std::string>(
      {"gloo", "nccl"}, [](const std::string& name) { return name; },
      [](std::string_view text) {
        return text == "gloo" || text == "nccl" ? std::optional(std::string(text)) : std::nullopt;
      });
}

TextForm<program::Optimizer> optimizerName() {
  return choiceOf<program::Optimizer>(
      {"sgd", "momentum", "adamw"}, [](program::Optimizer optimizer) { return program::toText(optimizer); },
      program::parseOptimizer);
}

void addPlanRows(RankRows& rows) {
  addRow(
      rows,
      {.flag = "--then",
       .help = "Plan file of the same model to run after the first, on the loaded weights (repeatable). "
               "BATCHxSEQUENCE:FILE: compare only this part of its outputs; the rest is padding"},
      [](auto& s) -> auto& { return s.then; }, planWithRows());
  addRow(
      rows,
      {.flag = "--replicas", .help = "Number of data-parallel replicas; each computes different rows of the batch"},
      [](auto& s) -> auto& { return s.replicas; }, countWithin(1, program::kMostReplicas));
  addRow(
      rows, {.flag = "--backend", .help = "gloo (CPUs) or nccl (GPUs)"}, [](auto& s) -> auto& { return s.backend; },
      backendName());
  addRow(
      rows, {.flag = "--input", .help = "Safetensors file with input_ids, labels, ...; default: random ids"},
      [](auto& s) -> auto& { return s.inputFile; }, filePath());
  addRow(
      rows, {.flag = "--output", .help = "Safetensors file for the outputs of rank 0"},
      [](auto& s) -> auto& { return s.outputFile; }, filePath());
  addRow(
      rows,
      {.flag = "--deviation",
       .help = "Safetensors file FILE.RANK for another rank's outputs if they differ from those of rank 0"},
      [](auto& s) -> auto& { return s.deviationFile; }, filePath());
  addRow(
      rows, {.flag = "--watch", .help = "File with the names of values of the forward pass to record"},
      [](auto& s) -> auto& { return s.watchFile; }, filePath());
  addRow(
      rows, {.flag = "--watched", .help = "Safetensors file FILE.RANK for the recorded values"},
      [](auto& s) -> auto& { return s.watchedFile; }, filePath());
}

void addProcessRows(RankRows& rows) {
  addRow(
      rows, {.flag = "--connect-timeout", .help = "Seconds to wait for the other ranks at the start"},
      [](auto& s) -> auto& { return s.connectTimeout; }, wholeSeconds(1, kMostSeconds));
  addRow(
      rows, {.flag = "--collective-timeout", .help = "Fail if a collective takes longer than this many seconds"},
      [](auto& s) -> auto& { return s.collectiveTimeout; }, wholeSeconds(1, kMostSeconds));
  addRow(
      rows, {.flag = "--skip-weights", .help = "Fill all parameters from the plan's seed instead of loading them"},
      [](auto& s) -> auto& { return s.skipWeights; }, switchForm());
  addRow(
      rows,
      {.flag = "--init-missing", .help = "Fill parameters that are missing in the checkpoint from the plan's seed"},
      [](auto& s) -> auto& { return s.initMissing; }, switchForm());
  addRow(
      rows, {.flag = "--passes", .help = "Run the forward pass N times and report the median time"},
      [](auto& s) -> auto& { return s.passes; }, countWithin(1, kMostPasses));
  addRow(
      rows, {.flag = "--quiet", .help = "Do not sample memory or report collectives and progress during the run"},
      [](auto& s) -> auto& { return s.isQuiet; }, switchForm());
  addRow(
      rows,
      {.flag = "--times",
       .help = "Record a timeline of this rank in the last training step, or in a second, warm forward pass"},
      [](auto& s) -> auto& { return s.recordsTimes; }, switchForm());
}

void addTrainingRows(RankRows& rows) {
  addRow(
      rows, {.flag = "--train-steps", .help = "Run N training steps instead of one forward pass"},
      [](auto& s) -> auto& { return s.training.steps; }, wholeNumber(0, program::kMostSteps));
  addRow(
      rows, {.flag = "--optimizer", .help = "sgd, momentum or adamw"},
      [](auto& s) -> auto& { return s.training.optimizer; }, optimizerName());
  addRow(
      rows, {.flag = "--lr", .help = "Learning rate"}, [](auto& s) -> auto& { return s.training.learningRate; },
      anyNumber());
  addRow(
      rows, {.flag = "--weight-decay", .help = "Weight decay"}, [](auto& s) -> auto& { return s.training.weightDecay; },
      anyNumber());
  addRow(
      rows, {.flag = "--clip-norm", .help = "Scale gradients down to this norm"},
      [](auto& s) -> auto& { return s.training.clipNorm; }, anyNumber());
  addRow(
      rows, {.flag = "--accumulate", .help = "Micro-batches per step"},
      [](auto& s) -> auto& { return s.training.accumulate; }, wholeNumber(1, program::kMostSteps));
}

void addGenerationRows(RankRows& rows) {
  addRow(
      rows, {.flag = "--generate", .help = "Generate N tokens after the prompt in --input"},
      [](auto& s) -> auto& { return s.generation.tokens; }, wholeNumber(0, program::kMostNewTokens));
  addRow(
      rows, {.flag = "--decode", .help = "With --generate: plan file of a decode step"},
      [](auto& s) -> auto& { return s.decodeFile; }, existingFile());
  addRow(
      rows, {.flag = "--end-token", .help = "With --generate: stop a row at this token (repeatable)"},
      [](auto& s) -> auto& { return s.generation.endTokens; }, wholeNumber(0, program::kMostNewTokens));
  addRow(
      rows, {.flag = "--padding-token", .help = "With --generate: token that pads stopped rows"},
      [](auto& s) -> auto& { return s.generation.paddingToken; }, wholeNumber(0, program::kMostNewTokens));
}

}  // namespace

const SettingRows<RankSpec>& rankSettings() {
  static const RankRows rows = [] {
    RankRows made;
    addPlanRows(made);
    addProcessRows(made);
    addTrainingRows(made);
    addGenerationRows(made);
    return made;
  }();
  return rows;
}

std::string trainingText(const program::Training& training) {
  RankSpec spec;
  if (training.isAsked()) spec.training = training;
  return fmt::format("[{}]", fmt::join(argumentsOf(rankSettings(), spec), " "));
}

std::string generationText(const program::Generation& generation) {
  RankSpec spec;
  if (generation.isAsked()) spec.generation = generation;
  return fmt::format("[{}]", fmt::join(argumentsOf(rankSettings(), spec), " "));
}

}  // namespace cleave::spec
