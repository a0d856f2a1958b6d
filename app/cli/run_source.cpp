#include "cli/run_source.h"

#include "base/quantities.h"
#include "cli/console.h"
#include "formats/safetensors.h"
#include "pipeline/compare.h"
#include "pipeline/plan_again.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace cleave::cli {

void RunSource::addTo(CLI::App& command) {
  planFlags = flags.addTo(command);
  command.get_option("MODEL")->description(
      "Model folder, config.json, exported program (.pt2), Hub id (org/name), or a plan file written by plan --json");
  command
      .add_option("--input", input,
                  "safetensors with input_ids, labels, attention_mask, token_type_ids; of an exported program its "
                  "inputs by their names")
      ->check(CLI::ExistingFile);
  command
      .add_option(
          "--expect", expect,
          "safetensors with the expected logits and loss; of an exported program output, or output_0, output_1, ...")
      ->check(CLI::ExistingFile);
  command.add_option("--mesh", meshText,
                     "dp=REPLICAS,tp=RANKS: the plan's ranks (tp) so many times over (dp), each replica on its rows of "
                     "--batch; instead of --ranks");
}

/// A loss that is expected is not left out because nothing says what to compute it from.
Result<void> RunSource::checkLossIsNotExpected(const std::string& inputs) const {
  if (expect.empty()) return {};
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(expect));
  if (!header.tensors.contains("loss")) return {};
  return fail(ErrorCode::BadInput,
              "{} has a loss, and {} no labels to compute one from: add labels, or leave the loss out {}.", expect,
              inputs, isPlan() ? "of the plan" : "with --loss off");
}

Result<void> RunSource::bring(bool doesReadWeights, const Progress& progress) {
  readsWeights = doesReadWeights;
  return bringModel(flags.model, readsWeights ? hub::Wanted::Weights : hub::Wanted::Config, progress);
}

Result<void> RunSource::check() {
  if (meshText.empty()) return {};
  CLEAVE_TRY(mesh, program::parseMesh("--mesh", meshText));
  if (isPlan()) return {};
  const auto isRanks = [](const CLI::Option* option) { return option->get_name() == "--ranks"; };
  const auto ranks = std::find_if(planFlags.begin(), planFlags.end(), isRanks);
  if (ranks != planFlags.end() && (*ranks)->count() > 0)
    return fail(ErrorCode::BadUsage, "--mesh says with tp= how many ranks split the model: leave --ranks out.");
  flags.ranks = mesh.tp;
  return {};
}

/// What one replica computes of so many rows.
Result<std::int64_t> RunSource::rowsOfReplica(std::int64_t rows) const {
  if (rows % mesh.dp == 0) return rows / mesh.dp;
  return fail(ErrorCode::BadUsage, "A batch of {} does not divide over {} replicas: each takes as many rows.", rows,
              mesh.dp);
}

Result<void> RunSource::takeRowsOfReplica() {
  if (!mesh.isReplicated()) return {};
  if (const auto source = pipeline::recognise(flags.model))
    CLEAVE_TRY_VOID(program::checkReplicated(mesh, flags.model, source->isExported));
  CLEAVE_TRY(flags.batch, rowsOfReplica(flags.batch.value_or(mesh.dp)));
  return {};
}

/// Empty: inputs are made up.
Result<std::string> RunSource::inputFile() const {
  if (!input.empty() || expect.empty() || !isTraining) return input.empty() ? expect : input;
  CLEAVE_TRY(const bool hasInputs, pipeline::holdsInputs(expect));
  return hasInputs ? expect : std::string();
}

/// Batch, sequence, mask and loss that the input file asks for, where no flag says otherwise.
Result<void> RunSource::takeShapeFromInput() {
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

Result<void> RunSource::takeSizesFromInput(const fs::path& archive, const std::string& file) {
  if (flags.batch || flags.sequence || !flags.sizes.empty()) return {};
  CLEAVE_TRY(const auto program, formats::openExportedProgram(archive));
  CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
  for (const auto& [symbol, size] : sizes) flags.sizes.push_back(fmt::format("{}={}", symbol, size));
  return {};
}

/// The model of a plan with the inputs of a file.
Result<plan::ModelInfo> RunSource::modelFor(const plan::ModelInfo& model, const std::string& file) const {
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
Result<std::shared_ptr<const plan::Plan>> RunSource::planFor(const Progress& progress) const {
  CLEAVE_TRY(auto plan, readPlanFile(flags.model));
  if (readsWeights && !isElsewhere) {
    CLEAVE_TRY(plan, pipeline::bringWeights(plan, consoleWatcher(), progress));
  }
  if (generation.isAsked()) {
    CLEAVE_TRY_VOID(pipeline::openSameModel(*plan, progress));
    return pipeline::planAgain(*plan, generation.modelFor(plan->model), progress);
  }
  CLEAVE_TRY(const std::string file, inputFile());
  if (file.empty()) return plan;
  CLEAVE_TRY(plan::ModelInfo wanted, modelFor(plan->model, file));
  CLEAVE_TRY(wanted.batch, rowsOfReplica(wanted.batch));
  if (pipeline::inputsInWords(wanted) == pipeline::inputsInWords(plan->model)) return plan;
  if (isElsewhere) {
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

Result<RunSource::Made> RunSource::make(const Progress& progress) {
  Made made;
  if (isPlan()) {
    CLEAVE_TRY(made.plan, planFor(progress));
    CLEAVE_TRY_VOID(checkRanks(*made.plan));
    made.warnings = made.plan->warnings;
    return made;
  }
  CLEAVE_TRY_VOID(takeShapeFromInput());
  CLEAVE_TRY_VOID(takeRowsOfReplica());
  if (isTraining) flags.isTraining = true;
  CLEAVE_TRY(const Planned planned, planModel(flags, false, progress));
  if (!planned.plan) return tl::unexpected(planned.planError);
  made.plan = planned.plan;
  made.model = planned.model;
  made.warnings = made.plan->warnings;
  CLEAVE_TRY_VOID(addIgnoredKeys(*planned.model, made.warnings));
  return made;
}

Result<void> RunSource::checkRanks(const plan::Plan& plan) const {
  if (meshText.empty() || plan.ranks == mesh.tp) return {};
  return fail(ErrorCode::BadUsage, "--mesh is \"{}\", and the plan is for {}: write dp={},tp={}.", meshText,
              counted(plan.ranks, "rank"), mesh.dp, plan.ranks);
}

}  // namespace cleave::cli
