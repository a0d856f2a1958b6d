#include "cli/plan_flags.h"

#include "pipeline/source/plan_file.h"
#include "settings/option_types.h"

#include <cstdio>

namespace cleave::cli {

void PlanFlags::addTo(CLI::App& command) {
  command.add_option("MODEL", m_model, "Model folder, config.json, exported program (.pt2) or Hub id (org/name)")
      ->type_name(option_types::kModel)
      ->required();
  m_flags.addTo(command);
}

void PlanFlags::hide(CLI::App& command, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) command.get_option(flag)->group(options::kHiddenGroup);
}

Result<PlanSettings> PlanFlags::read() const {
  PlanSettings settings;
  settings.model = m_model;
  CLEAVE_TRY_VOID(m_flags.readInto(settings));
  return settings;
}

void PlanFlags::hint(const PlanSettings& read) const {
  if (read.plan.cost.isTraining) return;
  // PlanSettings::settle refuses --dropout.
  const CLI::Option* const given =
      m_flags.firstGivenOf([](const auto& row) { return row.isOfTraining && !row.isNamed("dropout"); });
  if (given) std::fprintf(stderr, "%s has no effect without --train.\n", given->get_name().c_str());
}

Result<void> PlanFlags::checkNoSettingsWithPlan() const {
  const CLI::Option* const given = m_flags.firstGiven();
  if (!given || !pipeline::isPlanFile(m_model)) return {};
  return fail(ErrorCode::BadUsage,
              "{} is a plan, and {} is a setting of a new plan. Leave it out, or name the model instead of the plan.",
              m_model, given->get_name());
}

}  // namespace cleave::cli
