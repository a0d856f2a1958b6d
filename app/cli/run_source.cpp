#include "cli/run_source.h"

#include "base/quantities.h"
#include "cli/console.h"
#include "formats/open_exported.h"
#include "formats/safetensors.h"
#include "options/standard_flags.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/solve/plan_again.h"
#include "pipeline/solve/plan_weights.h"
#include "pipeline/source/planned_model.h"
#include "pipeline/source/source.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace cleave::cli {

void RunSource::addTo(CLI::App& command) {
  flags.addTo(command);
  command.get_option("MODEL")->description(
      "Model folder, config.json, exported program (.pt2), Hub id (org/name), or a plan file written by plan --json");
}

void RunSource::addMeshTo(CLI::App& command) {
  command
      .add_option("--mesh", meshText,
                  "dp=REPLICAS,tp=RANKS: replicas (dp) of the plan's ranks (tp), each with its rows of --batch; "
                  "replaces --ranks")
      ->check(options::notEmpty("write dp=REPLICAS,tp=RANKS, such as dp=2,tp=4"));
}

Result<void> RunSource::checkLossHasLabels(const std::string& inputs) const {
  if (!m_run.expect) return {};
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(*m_run.expect));
  if (!header.tensors.contains("loss")) return {};
  return fail(ErrorCode::BadInput, "{} has a loss, but {} has no labels to compute it from. Add labels, or {}.",
              m_run.expect->string(), inputs, isPlan() ? "make the plan with --loss off" : "use --loss off");
}

Result<void> RunSource::resolve(bool doesReadWeights, const Progress& progress) {
  readsWeights = doesReadWeights;
  CLEAVE_TRY(settings, flags.read());
  return resolveModel(settings.model, readsWeights ? hub::Wanted::Weights : hub::Wanted::Config, progress);
}

Result<void> RunSource::check(const spec::RunSpec& run) {
  m_run = run;
  CLEAVE_TRY(m_inputs, inputFile());
  hasInputs = !m_inputs.empty();
  if (meshText.empty()) return {};
  CLEAVE_TRY(mesh, program::parseMesh("--mesh", meshText));
  if (isPlan()) return {};
  if (flags.isGiven("ranks"))
    return fail(ErrorCode::BadUsage, "--mesh sets the number of ranks with tp=: leave --ranks out.");
  settings.plan.ranks = mesh.tp;
  return {};
}

Result<std::int64_t> RunSource::rowsOfReplica(std::int64_t rows) const {
  if (rows % mesh.dp == 0) return rows / mesh.dp;
  return fail(ErrorCode::BadUsage, "--batch is {}, not divisible by {} replicas.", rows, mesh.dp);
}

Result<void> RunSource::applyReplicas() {
  if (!mesh.isReplicated()) return {};
  if (const auto source = pipeline::recognise(settings.model))
    CLEAVE_TRY_VOID(program::checkReplicated(mesh, settings.model, source->isExported));
  CLEAVE_TRY(settings.input.batch, rowsOfReplica(settings.input.batch.value_or(mesh.dp)));
  return {};
}

Result<std::string> RunSource::inputFile() const {
  if (m_run.input) return m_run.input->string();
  if (!m_run.expect) return std::string();
  CLEAVE_TRY(const bool isInput, m_run.training.isAsked() ? pipeline::holdsInputs(*m_run.expect) : Result<bool>(true));
  return isInput ? m_run.expect->string() : std::string();
}

/// Batch, sequence, mask and loss of the input file, unless a flag sets them.
Result<void> RunSource::applyInputShape() {
  if (prompt) {
    prompt->setShape(settings.input);
    return {};
  }
  const std::string& file = m_inputs;
  if (file.empty()) return {};
  if (const auto source = pipeline::recognise(settings.model); source && source->isExported)
    return applyInputSizes(source->path, file);
  spec::InputSpec& asked = settings.input;
  CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, asked.loss));
  if (!asked.batch) asked.batch = shape.batch;
  if (!asked.sequence) asked.sequence = shape.sequence;
  asked.mask = asked.mask || shape.hasMask;
  asked.tokenTypes = asked.tokenTypes || shape.hasTokenTypes;
  if (asked.loss && !shape.hasLabels) {
    CLEAVE_TRY_VOID(checkLossHasLabels(file));
    asked.loss = false;
  }
  return {};
}

Result<void> RunSource::applyInputSizes(const fs::path& archive, const std::string& file) {
  spec::InputSpec& asked = settings.input;
  if (asked.batch || asked.sequence || !asked.sizes.empty()) return {};
  CLEAVE_TRY(const auto program, formats::openExportedProgram(archive));
  CLEAVE_TRY(asked.sizes, pipeline::readInputSizes(program, file));
  return {};
}

/// The plan's model with the input shapes of the file.
Result<plan::ModelInfo> RunSource::modelFor(const plan::ModelInfo& model, const std::string& file) const {
  if (model.isExported) {
    CLEAVE_TRY(const auto program, formats::openExportedProgram(model.source));
    CLEAVE_TRY(const auto sizes, pipeline::readInputSizes(program, file));
    plan::ModelInfo wanted = model;
    for (const auto& [symbol, size] : sizes) wanted.input.sizes[symbol] = size;
    return wanted;
  }
  CLEAVE_TRY(const auto shape, pipeline::readInputShape(file, model.hasLoss()));
  if (model.hasLoss() && !shape.hasLabels) CLEAVE_TRY_VOID(checkLossHasLabels(file));
  return pipeline::withInputs(model, shape);
}

/// The plan in the file; if the inputs have another shape, a plan for them with the same settings.
Result<std::shared_ptr<const plan::Plan>> RunSource::planFor(const Progress& progress) const {
  CLEAVE_TRY(auto plan, readPlanFile(settings.model));
  if (readsWeights && !isElsewhere) {
    CLEAVE_TRY(plan, pipeline::fetchPlanWeights(plan, consoleWatcher(), progress));
  }
  if (prompt) {
    CLEAVE_TRY_VOID(pipeline::openSameModel(*plan, progress));
    return pipeline::planAgain(*plan, prompt->modelFor(plan->model), progress);
  }
  const std::string& file = m_inputs;
  if (file.empty()) return plan;
  CLEAVE_TRY(plan::ModelInfo wanted, modelFor(plan->model, file));
  CLEAVE_TRY(const std::int64_t rows, rowsOfReplica(wanted.batch));
  if (!wanted.isExported) wanted.setShape(rows, wanted.sequence);
  if (pipeline::inputsInWords(wanted) == pipeline::inputsInWords(plan->model)) return plan;
  if (isElsewhere) {
    return fail(ErrorCode::BadInput,
                "{} is a plan for {}, but {} has {}. Ranks on other machines read the plan file: make one for these "
                "inputs.",
                settings.model, pipeline::inputsInWords(plan->model), file, pipeline::inputsInWords(wanted));
  }
  endProgress();
  std::fprintf(stderr, "%s is a plan for %s, but %s has %s: made a plan for these inputs, with the same settings.\n",
               settings.model.c_str(), pipeline::inputsInWords(plan->model).c_str(), file.c_str(),
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
  if (m_run.training.isAsked()) settings.plan.cost.isTraining = true;
  CLEAVE_TRY(const Planned planned, planModel(settings, false, progress));
  if (!planned.plan) return tl::unexpected(planned.planError);
  made.plan = planned.plan;
  made.model = planned.model;
  made.warnings = made.plan->warnings;
  CLEAVE_TRY_VOID(addIgnoredKeys(*planned.model, made.warnings));
  return made;
}

Result<void> RunSource::checkRanks(const plan::Plan& plan) const {
  if (meshText.empty() || plan.spec.ranks == mesh.tp) return {};
  return fail(ErrorCode::BadUsage, "--mesh is \"{}\", but the plan is for {}. Use dp={},tp={}.", meshText,
              counted(plan.spec.ranks, "rank"), mesh.dp, plan.spec.ranks);
}

}  // namespace cleave::cli
