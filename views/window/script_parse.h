#pragma once
/// Reads a script. All commands and arguments are checked with the table of verbs (script_verbs.h) before the first one
/// runs.
#include <QString>
#include <vector>

#include "base/result.h"
#include "views/window/script_verb.h"

namespace cleave::views {

struct ScriptCommand {
  int line = 0;  ///< 1-based
  const ScriptVerb* verb = nullptr;
  QString rest;        ///< after the verb, as written, trimmed
  QStringList values;  ///< one for each argument of the verb; empty: left out
};

/// BadUsage names the line of the first command with an error, and says what to write there.
Result<std::vector<ScriptCommand>> parseScript(const QString& text);

}  // namespace cleave::views
