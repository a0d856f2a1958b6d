#pragma once
/// The table of a run's settings: which flags each mode has. `run`, `train`, `generate` and `bisect` read it, and the
/// window prints it as the equivalent command line.
///
///     readArguments(runSettings(RunMode::Train), {"--steps", "10", "--lr", "0.01"}, spec);
///
/// `run` (RunMode::Forward) also has the flags that were replaced by the other commands, hidden.
#include "settings/setting.h"
#include "spec/run/run_spec.h"

namespace cleave::pipeline {

const settings::SettingRows<spec::RunSpec>& runSettings(spec::RunMode mode);

}  // namespace cleave::pipeline
