#pragma once
/// A plan as a user asks for it, and the table of its settings. `plan`, `run`, `export` and the questions read it, the
/// window shows and stores it, and prints it as the equivalent command line. Both directions:
///
///     argumentsOf(PlanSettings::of("models/llama", input, spec));   // {"models/llama", "--ranks", "4", ...}
///     readPlanArguments("models/llama", {"--ranks", "4"});          // the same settings
#include "base/overwriting.h"
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solved.h"
#include "pipeline/solve/devices.h"
#include "settings/setting.h"

#include <memory>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct PlanSettings {
  std::string model;  ///< what MODEL is: a folder, an archive, a Hub id or a plan
  spec::InputSpec input;
  spec::PlanSpec plan;
  std::string device = std::string(kDefaultDevice);  ///< name of a bundled profile, or a file that has one

  /// `deviceFile`: the file of the spec's profile; empty: the profile's name.
  static PlanSettings of(std::string model, spec::InputSpec input, spec::PlanSpec plan, std::string deviceFile = {});
  /// Reads `device` into `plan.cost.profile`, and lets the plan's dropout decide the input's. BadUsage for settings
  /// that exclude each other.
  Result<void> settle();
  /// The files that these settings read: those of the model, of its weights, and of a device profile.
  std::vector<NamedFile> filesRead() const;
};

/// All settings but MODEL, in the order of the help.
const settings::SettingRows<PlanSettings>& planSettings();
/// The flags of these settings without defaults, except --ranks.
std::vector<std::string> flagsOf(PlanSettings asked);
/// The command line after `cleave-cli plan`: the model, then flagsOf().
std::vector<std::string> argumentsOf(const PlanSettings& asked);
/// The settings that such arguments, without the model, set. Not settled: a device is not read.
Result<PlanSettings> readPlanArguments(std::string model, const std::vector<std::string>& words);

/// A model that was opened, solved and planned with settings.
struct Planned {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
  std::shared_ptr<const plan::Plan> plan;  ///< null if there is no solution; `planError` has the reason
  Error planError;
};
Result<Planned> planModel(PlanSettings asked, bool records, const Progress& progress);

}  // namespace cleave::pipeline
