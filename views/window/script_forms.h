#pragma once
/// How an argument of a script's command is written. A form checks the text, and says what may be written in errors and
/// in docs/scripts.md.
///
///     numberForm(1, 99).check("remedy N", "0");   // BadUsage: remedy N is "0": write a whole number from 1 to 99.
#include "base/result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::views {

/// A key of an argument KEY=VALUE, for documents.
struct ScriptKey {
  std::vector<std::string> names;  ///< "budget", then its other names
  std::string value;               ///< "INT", "on|off"
  std::string help;
  bool hasEffect = true;  ///< false: accepted, but the command does not apply it
};

struct ScriptForm {
  std::vector<std::string> words = {};  ///< the allowed words; empty: other text
  std::string write = {};               ///< "a whole number from 1 to 99"; empty: the argument's name says it
  bool hasSpaces = false;               ///< the argument is the rest of the line
  /// BadUsage names the argument and says what to write. Null: any text.
  std::function<Result<void>(std::string_view argument, const std::string& text)> check = {};
  std::vector<ScriptKey> (*keys)() = nullptr;  ///< KEY=VALUE: the keys
};

ScriptForm wordForm(std::string write = {});  ///< any text without spaces
ScriptForm textForm(std::string write = {});  ///< any text to the end of the line
ScriptForm choiceForm(std::vector<std::string> words);
ScriptForm numberForm(int least, int most);
ScriptForm stepForm();        ///< "+1", "-1" or a step
ScriptForm windowSizeForm();  ///< "1440x900"
/// A file's name without a folder. `endings`: the allowed ones, ".svg"; empty: any name without spaces.
ScriptForm fileNameForm(std::vector<std::string> endings = {});
ScriptForm pinForm();
ScriptForm placementOrStrategyForm();

}  // namespace cleave::views
