#include "cli/run_flags.h"

#include "pipeline/settings/run_settings.h"
#include "settings/option_types.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace cleave::cli {
namespace {

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

RunFlags::RunFlags(RunMode command) : m_command(command), m_flags(pipeline::runSettings(command)) {
  spec.bisects = command == RunMode::Bisect;
}

void RunFlags::addTo(CLI::App& command) {
  source.addTo(command);
  m_flags.addTo(command);
  command.add_option("--json", json, "Write the report as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  if (m_command == RunMode::Forward)
    m_oldFlags.add(command.add_flag("--bisect", spec.bisects, "bisect"), "bisect MODEL");
  if (m_command == RunMode::Generate) PlanFlags::hide(command, {"--batch", "--seq", "--train"});
  if (m_command == RunMode::Bisect || m_command == RunMode::Generate) return;
  source.addMeshTo(command);
  cluster.addTo(command);
  command
      .add_option("--timeline", timeline,
                  "Write when each rank did what in the last step, in the format of chrome://tracing and "
                  "ui.perfetto.dev; - for stdout")
      ->type_name(option_types::kFileOrDash);
}

Result<void> RunFlags::check(const Progress& progress) {
  CLEAVE_TRY_VOID(m_flags.readInto(spec));
  CLEAVE_TRY_VOID(source.resolve(!spec.skipWeights && !cluster.onlyPrints(), progress));
  m_flags.hint("run");
  m_oldFlags.hint("run");
  CLEAVE_TRY_VOID(source.flags.checkNoSettingsWithPlan());
  source.isElsewhere = cluster.isAsked();
  CLEAVE_TRY_VOID(source.check(spec));
  spec.replicas = source.mesh.dp;
  CLEAVE_TRY_VOID(checkTraining());
  CLEAVE_TRY_VOID(checkGeneration());
  CLEAVE_TRY_VOID(checkBisection());
  CLEAVE_TRY_VOID(cluster.check(source.settings.model, !spec.shapes.empty()));
  if (cluster.onlyPrints()) return {};
  CLEAVE_TRY_VOID(checkOutputs(source.settings.filesRead()));
  CLEAVE_TRY_VOID(checkShapes());
  if (json != "-" || timeline != "-") return {};
  return fail(ErrorCode::BadUsage, "--json - and --timeline - both write to standard output: name a file for one.");
}

Result<void> RunFlags::checkTraining() const {
  CLEAVE_TRY_VOID(program::check(spec.training));
  if (spec.training.isAsked() || source.settings.plan.cost.isTraining) return {};
  const char* const wrong = "{} applies to training: leave it out, add --train, or use cleave-cli train.";
  for (const char* flag : {"lr", "weight-decay", "clip-norm", "accumulate"}) {
    if (m_flags.isGiven(flag)) return fail(ErrorCode::BadUsage, fmt::runtime(wrong), fmt::format("--{}", flag));
  }
  for (const char* flag : {"optimizer", "checkpoint-activations"}) {
    if (source.flags.isGiven(flag)) return fail(ErrorCode::BadUsage, fmt::runtime(wrong), fmt::format("--{}", flag));
  }
  return {};
}

Result<void> RunFlags::checkGeneration() const {
  if (!spec.generation.isAsked()) {
    if (spec.prompt.empty() && !spec.ignoresEndToken) return {};
    return fail(ErrorCode::BadUsage, "{} is a flag of cleave-cli generate: leave it out, or generate.",
                spec.prompt.empty() ? "--ignore-end-token" : "--prompt");
  }
  return exclude({{"--train-steps", spec.training.isAsked()},
                  {"--shapes", !spec.shapes.empty()},
                  {"--mesh", !source.meshText.empty()},
                  {"--timeline", !timeline.empty()},
                  {"--print-command", cluster.onlyPrints()},
                  {"--listen", cluster.isAsked()},
                  {"--train", source.settings.plan.cost.isTraining},
                  {"--batch", source.settings.input.batch.has_value()},
                  {"--seq", source.settings.input.sequence.has_value()}},
                 "Generation runs a prompt of its own shape on this machine");
}

Result<void> RunFlags::checkBisection() const {
  if (!spec.bisects) {
    if (!spec.against) return {};
    return fail(ErrorCode::BadUsage, "--against is a flag of cleave-cli bisect: leave it out, or bisect.");
  }
  return exclude({{"--train-steps", spec.training.isAsked()},
                  {"--generate", spec.generation.isAsked()},
                  {"--expect", spec.expect.has_value()},
                  {"--output", spec.output.has_value()},
                  {"--shapes", !spec.shapes.empty()},
                  {"--mesh", !source.meshText.empty()},
                  {"--timeline", !timeline.empty()},
                  {"--no-check", !spec.compareUnsplit},
                  {"--print-command", cluster.onlyPrints()},
                  {"--listen", cluster.isAsked()}},
                 "A bisection compares one forward pass on this machine, value by value");
}

Result<void> RunFlags::checkShapes() const {
  if (spec.shapes.empty()) {
    if (!spec.padsToPlanned) return {};
    return fail(ErrorCode::BadUsage, "--pad-to-planned pads the shapes of --shapes: add them.");
  }
  if (source.isPlan())
    return fail(ErrorCode::BadUsage, "--shapes needs a model, not a plan: a plan is made for one shape.");
  if (spec.input || spec.expect)
    return fail(ErrorCode::BadUsage, "--shapes and --input or --expect exclude each other.");
  return exclude({{"--output", spec.output.has_value()}, {"--timeline", !timeline.empty()}},
                 "Each of the shapes would replace the file of the one before");
}

Result<void> RunFlags::checkOutputs(std::vector<NamedFile> read) const {
  read.insert(read.end(), {{"--expect", spec.expect.value_or("")}, {"--input", spec.input.value_or("")}});
  return refuseOverwriting({{"--output", spec.output.value_or("")}, {"--json", json}, {"--timeline", timeline}}, read);
}

std::optional<double> RunFlags::tolerance() const {
  if (!spec.rtol && !spec.atol) return std::nullopt;
  return std::max(spec.rtol.value_or(0), spec.atol.value_or(0));
}

pipeline::RunRequest RunFlags::request(std::shared_ptr<const plan::Plan> plan) const {
  pipeline::RunRequest request{spec};
  request.training.optimizer = plan->spec.cost.optimizer;
  request.expectHasInputs = source.hasInputs;
  request.plan = std::move(plan);
  return request;
}

}  // namespace cleave::cli
