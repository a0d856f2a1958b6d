#pragma once
/// Shell scripts that complete commands, options, values and files. They call no program: they complete what the
/// programs accept when the script is written.
#include "cli/command_facts.h"

#include <string>

namespace cleave::cli {

std::string bashCompletion(const std::vector<CommandFacts>& programs);
std::string zshCompletion(const std::vector<CommandFacts>& programs);
std::string fishCompletion(const std::vector<CommandFacts>& programs);

/// What completes a path (settings/option_types.h).
struct PathParts {
  bool isPath = false, anyFile = false, folder = false;
  std::vector<std::string> endings;  ///< ".pt2"
};
PathParts pathParts(const OptionFacts& option);

}  // namespace cleave::cli
