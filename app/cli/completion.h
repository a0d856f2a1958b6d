#pragma once
/// Scripts by which shells complete the programs' commands, options, values and files. They call no program: what is
/// completed is what the programs took when the script was written.
#include "cli/command_facts.h"

#include <string>

namespace cleave::cli {

std::string bashCompletion(const std::vector<CommandFacts>& programs);
std::string zshCompletion(const std::vector<CommandFacts>& programs);
std::string fishCompletion(const std::vector<CommandFacts>& programs);

/// Of what completes a path (base/option_types.h).
struct PathParts {
  bool isPath = false, anyFile = false, folder = false;
  std::vector<std::string> endings;  ///< ".pt2"
};
PathParts pathParts(const OptionFacts& option);

}  // namespace cleave::cli
