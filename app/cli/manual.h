#pragma once
/// The pages that list commands and options: docs/cli.md and the man pages.
#include "cli/command_facts.h"

#include <string>

namespace cleave::cli {

/// All programs, as docs/cli.md.
std::string manualMarkdown(const std::vector<CommandFacts>& programs);
/// One program, as a man page of section 1.
std::string manPage(const CommandFacts& program);

}  // namespace cleave::cli
