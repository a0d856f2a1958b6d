#include "cli/run_source.h"

#include "base/quantities.h"
#include "cli/console.h"
#include "formats/open_exported.h"
#include "formats/safetensors.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/solve/plan_again.h"
#include "pipeline/solve/plan_weights.h"
#include "pipeline/source/planned_model.h"
#include "pipeline/source/source.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace cleave::cli {

void RunSource::addTo(CLI::App& command) {
  planFlags = flags.addTo(command);
  command.get_option("MODEL")->description(
      "Model folder, config.json, exported program (.pt2), Hub id (org/name), or a plan file written by plan --json");
  command
      .add_option("--input", input,
                  "safetensors with input_ids, labels, attention_mask, token_type_ids; for an exported program, its "
                  "inputs by name")
      ->check(CLI::ExistingFile);
  command
      .add_option("--expect", expect,
                  "safetensors with the expected logits and loss; for an exported program output, or output_0, "
                  "output_1, ...")
      ->check(CLI::ExistingFile);
}

void RunSource::addMeshTo(CLI::App& command) {
  command.add_option("--mesh", meshText,
                     "dp=REPLICAS,tp=RANKS: replicas (dp) of the plan's ranks (tp), each with its rows of --batch; "
                     "replaces --ranks");
}

Result<void> RunSource::checkLossHasLabels(const std::string& inputs) const {
  if (expect.empty()) return {};
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(expect));
  if (!header.tensors.contains("loss")) return {};
  return fail(ErrorCode::BadInput, "{} has a loss, but {} has no labels to compute it from. Add labels, or {}.", expect,
              inputs, isPlan() ? "make the plan with --loss off" : "use --loss off");
}

Result<void> RunSource::resolve(bool doesReadWeights, const Progress& progress) {
  readsWeights = doesReadWeights;
  return resolveModel(flags.model, readsWeights ? hub::Wanted::Weights : hub::Wanted::Config, progress);
}

Result<void> RunSource::check() {
  if (meshText.empty()) return {};
  CLEAVE_TRY(mesh, program::parseMesh("--mesh", meshText));
  if (isPlan()) return {};
  const auto isRanks = [](const CLI::Option* option) { return option->get_name() == "--ranks"; };
  const auto ranks = std::find_if(planFlags.begin(), planFlags.end(), isRanks);
  if (ranks != planFlags.end() && (*ranks)->count() > 0)
    return fail(ErrorCode::BadUsage, "--mesh sets the number of ranks with tp=: leave --ranks out.");
  flags.ranks = mesh.tp;
  return {};
}

Result<std::int64_t> RunSource::rowsOfReplica(std::int64_t rows) const {
  if (rows % mesh.dp == 0) return rows / mesh.dp;
  return fail(ErrorCode::BadUsage, "--batch is {}, not divisible by {} replicas.", rows, mesh.dp);
}

Result<void> RunSource::applyReplicas() {
  if (!mesh.isReplicated()) return {};
  if (const auto source = pipeline::recognise(flags.model))
    CLEAVE_TRY_VOID(program::checkReplicated(mesh, flags.model, source->isExported));
  CLEAVE_TRY(flags.batch, rowsOfReplica(flags.batch.value_or(mesh.dp)));
  return {};
}

Result<std::string> RunSource::inputFile() const {
  if (!input.empty() || expect.empty() || !isTraining) return input.empty() ? expect : input;
  CLEAVE_TRY(const bool hasInputs, pipeline::holdsInputs(expect));
  return hasInputs ? expect : std::string();
}

/// Batch, sequence, mask and loss of the input file, unless a flag sets them.
Result<void> RunSource::applyInputShape() {
  if (generation.isAsked()) {
    generation.setShape(flags);
    return {};
  }
  CLEAVE_TRY(const std::string file, inputFile());
  if (file.empty()) return {};
  if (const auto source = pipeline::recognise(flags.model); source && source->isExported)
    return applyInputSizes(source->path, file);
  const bool wantsLoss = flags.loss != "off";
  CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, wantsLoss));
  if (!flags.batch) flags.batch = shape.batch;
  if (!flags.sequence) flags.sequence = shape.sequence;
  if (shape.hasMask) flags.mask = "on";
  if (shape.hasTokenTypes) flags.tokenTypes = "on";
  if (wantsLoss && !shape.hasLabels) {
    CLEAVE_TRY_VOID(checkLossHasLabels(file));
    flags.loss = "off";
  }
  return {};
}

Result<void> RunSource::applyInputSizes(const fs::path& archive, const std::string& file) {
  if (flags.batch || flags.sequence || !flags.sizes.empty()) return {};
  CLEAVE_TRY(const auto program, formats::openExportedProgram(archive));
  CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
  for (const auto& [symbol, size] : sizes) flags.sizes.push_back(fmt::format("{}={}", symbol, size));
  return {};
}

/// The plan's model with the input shapes of the file.
Result<plan::ModelInfo> RunSource::modelFor(const plan::ModelInfo& model, const std::string& file) const {
  if (model.isExported) {
    CLEAVE_TRY(const auto program, formats::openExportedProgram(model.source));
    CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
    plan::ModelInfo wanted = model;
    for (const auto& [symbol, size] : sizes) wanted.sizes[symbol] = size;
    return wanted;
  }
  CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, model.hasLoss));
  if (model.hasLoss && !shape.hasLabels) CLEAVE_TRY_VOID(checkLossHasLabels(file));
  return pipeline::withInputs(model, shape);
}

/// The plan in the file; if the inputs have another shape, a plan for them with the same settings.
Result<std::shared_ptr<const plan::Plan>> RunSource::planFor(const Progress& progress) const {
  CLEAVE_TRY(auto plan, readPlanFile(flags.model));
  if (readsWeights && !isElsewhere) {
    CLEAVE_TRY(plan, pipeline::fetchPlanWeights(plan, consoleWatcher(), progress));
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
                "{} is a plan for {}, but {} has {}. Ranks on other machines read the plan file: make one for these "
                "inputs.",
                flags.model, pipeline::inputsInWords(plan->model), file, pipeline::inputsInWords(wanted));
  }
  endProgress();
  std::fprintf(stderr, "%s is a plan for %s, but %s has %s: made a plan for these inputs, with the same settings.\n",
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
  CLEAVE_TRY_VOID(applyInputShape());
  CLEAVE_TRY_VOID(applyReplicas());
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
  return fail(ErrorCode::BadUsage, "--mesh is \"{}\", but the plan is for {}. Use dp={},tp={}.", meshText,
              counted(plan.ranks, "rank"), mesh.dp, plan.ranks);
}

}  // namespace cleave::cli
