#pragma once
/// Parts of the script's language that both the check before a run and the run itself read.
#include "views/window/script.h"

namespace cleave::views {

struct KeyValue {
  QString key, value;
};
/// "ranks=2 pin=lm_head=row" → pairs split at the first =.
std::vector<KeyValue> keyValues(const QString& text);
std::optional<int> rankCount(const QString& text);
/// Settings of a run with one of them changed as `run` and `set-run` say: "steps" "5". nullopt: there is none such, or
/// no such value.
std::optional<RunSettings> applyRunArgument(const KeyValue& pair, RunSettings settings);

}  // namespace cleave::views
