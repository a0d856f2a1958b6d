#pragma once
/// The values of `solve` and `run` in scripts: NAME=VALUE, by the names in the tables of settings with _ for -, and by
/// the short names there. BadUsage says what to write.
#include "views/session/runs.h"

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

}  // namespace cleave::views
