#pragma once
/// The script's language (script.h describes it). All commands and arguments are checked before the first one runs.
#include <QString>
#include <vector>

#include "base/result.h"

namespace cleave::views {

struct ScriptCommand {
  int line = 0;  ///< 1-based
  QString name;
  QString rest;  ///< as written, trimmed
};

/// BadUsage names the line of the first unknown command or malformed argument.
Result<std::vector<ScriptCommand>> parseScript(const QString& text);

}  // namespace cleave::views
