#pragma once
/// The commands and options of a program for its manual and its completions, read from what CLI11 parses. Hidden
/// commands and options are left out.
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace cleave::cli {

struct OptionFacts {
  std::string name;       ///< "--ranks", or "MODEL" for a positional
  std::string shortName;  ///< "-h", or empty
  std::string description;
  std::string takes;        ///< "TEXT", "INT", "{on,off}", "FILE|-" (settings/option_types.h); empty: a flag
  std::string unlessGiven;  ///< default, if it is shown
  std::string variable;     ///< environment variable that is read if the option is not given
  bool isPositional = false, isRequired = false;

  bool isFlag() const { return takes.empty(); }
  /// The words of "{on,off}"; empty for another type.
  std::vector<std::string> values() const;
};

struct CommandFacts {
  std::string name, description;
  std::vector<OptionFacts> options;
  std::vector<CommandFacts> commands;

  const OptionFacts* positional() const;  ///< the first; nullptr if the command has no positional
};

CommandFacts factsOf(const CLI::App& app);
/// cleave, cleave-cli as `cleaveCli` declares it, and cleave-rank.
std::vector<CommandFacts> programFacts(const CLI::App& cleaveCli);

}  // namespace cleave::cli
