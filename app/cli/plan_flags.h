#pragma once
/// MODEL and the flags that define how it is captured and solved.
#include "options/setting_flags.h"
#include "pipeline/settings/plan_settings.h"

namespace cleave::cli {

using pipeline::PlanSettings;

class PlanFlags {
 public:
  PlanFlags() : m_flags(pipeline::planSettings()) {}
  void addTo(CLI::App& command);
  /// Leaves flags out of the help of a command that refuses them.
  static void hide(CLI::App& command, std::initializer_list<const char*> flags);
  const std::string& model() const { return m_model; }
  bool isGiven(std::string_view name) const { return m_flags.isGiven(name); }
  /// The settings that were given. MODEL is as written, and nothing is settled.
  Result<PlanSettings> read() const;
  /// Names on standard error the first given flag that has no effect, because the plan is not for training.
  void hint(const PlanSettings& read) const;
  /// BadUsage if MODEL is a plan and one of these flags is given: a plan already has all these settings.
  Result<void> checkNoSettingsWithPlan() const;

 private:
  std::string m_model;
  options::SettingFlags<PlanSettings> m_flags;
};

}  // namespace cleave::cli
