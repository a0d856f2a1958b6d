#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "exchange/formats.h"
#include "pipeline/source/source_files.h"
#include "settings/option_types.h"

namespace cleave::cli {
namespace {

struct ExportCommand {
  PlanFlags flags;
  std::string format = "json", out = "-";
  exchange::Options options;

  Result<int> run() {
    const Progress progress = consoleProgress();
    CLEAVE_TRY(PlanSettings asked, flags.read());
    flags.hint(asked);
    CLEAVE_TRY_VOID(resolveModel(asked.model, hub::Wanted::Config, progress));
    CLEAVE_TRY_VOID(flags.checkNoSettingsWithPlan());
    CLEAVE_TRY_VOID(refuseOverwriting({{"--out", out}}, asked.filesRead()));
    std::shared_ptr<const plan::Plan> plan;
    if (isPlanFile(asked.model)) {
      CLEAVE_TRY(plan, readUnalteredPlan(asked.model));
      CLEAVE_TRY_VOID(refuseOverwriting({{"--out", out}}, pipeline::sourceFilesOf(plan->model.source)));
    } else {
      CLEAVE_TRY(const Planned planned, planModel(asked, false, progress));
      if (!planned.plan) return tl::unexpected(planned.planError);
      plan = planned.plan;
    }
    endProgress();
    exchange::Options chosen = options;
    chosen.progress = progress;
    CLEAVE_TRY(const exchange::Exported exported, exchange::formatNamed(format)->write(*plan, chosen));
    CLEAVE_TRY_VOID(writeOutput(out, exported.text));
    warn(exported.sentences);
    return 0;
  }
};

}  // namespace

void addExportCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<ExportCommand>();
  CLI::App* command = app.add_subcommand("export", "Write a plan in another format");
  state->flags.addTo(*command);
  command->get_option("MODEL")->description(
      "Model folder, config.json, exported program (.pt2), Hub id (org/name), or a plan file");
  std::vector<std::string> names;
  std::string help = "What to write";
  for (const exchange::Format& format : exchange::formats()) {
    names.emplace_back(format.name);
    help += fmt::format("{} {}: {}", names.size() > 1 ? ";" : ":", format.name, format.what);
  }
  command->add_option("--format", state->format, help)->check(CLI::IsMember(names))->capture_default_str();
  command->add_option("--transformers", state->options.transformers, "tp-plan: for this major version, 4 or 5")
      ->check(CLI::Range(4, 5))
      ->capture_default_str();
  command->add_option("--out", state->out, "File, or - for stdout")
      ->type_name(option_types::kFileOrDash)
      ->capture_default_str();
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
