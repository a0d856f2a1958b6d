#pragma once
/// The values of `solve` and `run` in scripts: KEY=VALUE, by the names in the tables of settings with _ for -, and by
/// the short names there. BadUsage names the key and the value, and says what to write.
#include "views/session/runs.h"
#include "views/window/script_forms.h"

namespace cleave::views {

struct KeyValue {
  QString key, value;
};
/// "a=b c=d"
std::vector<KeyValue> keyValues(const QString& text);

/// A setting of a plan, or a pin: "pin=lm_head=row", "lm_head.weight=S(0)". "auto" and "none" leave a setting out.
Result<void> readSolveValue(const KeyValue& pair, pipeline::PlanSettings& settings);
/// A setting of a run, its ranks, or the optimizer of its training.
Result<void> readRunValue(const KeyValue& pair, RunSettings& settings);

/// The same for the table of verbs: checks one KEY=VALUE, and lists the keys.
ScriptForm solveValueForm();
ScriptForm runValueForm();

}  // namespace cleave::views
