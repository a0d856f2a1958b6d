#pragma once
/// The script's language (script.h describes it). All commands and arguments are checked before the first one runs.
#include <QString>
#include <optional>
#include <vector>

#include "base/result.h"
#include "views/session/runs.h"

namespace cleave::views {

struct ScriptCommand {
  int line = 0;  ///< 1-based
  QString name;
  QString rest;  ///< as written, trimmed
};

/// BadUsage names the line of the first unknown command or malformed argument.
Result<std::vector<ScriptCommand>> parseScript(const QString& text);

struct KeyValue {
  QString key, value;
};
/// "ranks=2 pin=lm_head=row" → pairs split at the first =.
std::vector<KeyValue> keyValues(const QString& text);
std::optional<int> rankCount(const QString& text);
/// The settings of a run with one of them changed, as in `run` and `set-run`: "steps" "5". nullopt: unknown key or
/// invalid value.
std::optional<RunSettings> applyRunArgument(const KeyValue& pair, RunSettings settings);

}  // namespace cleave::views
