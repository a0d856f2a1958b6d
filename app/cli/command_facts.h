#pragma once
/// The commands and options of a program as its pages and its completions show them, read from CLI11's declarations:
/// what the program takes is declared once.
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace cleave::cli {

struct OptionFacts {
  std::string name;       ///< "--ranks", or "MODEL" of one that goes by its place
  std::string shortName;  ///< "-h", or empty
  std::string description;
  std::string takes;        ///< "TEXT", "INT", "{on,off}", "FILE|-" (base/option_types.h); empty: a flag
  std::string unlessGiven;  ///< the default, where there is one to show
  std::string variable;     ///< of the environment, that is read where the option is not given
  bool isPositional = false, isRequired = false;

  bool isFlag() const { return takes.empty(); }
  /// Of "{on,off}"; empty: it takes other things.
  std::vector<std::string> values() const;
};

struct CommandFacts {
  std::string name, description;
  std::vector<OptionFacts> options;
  std::vector<CommandFacts> commands;

  const OptionFacts* positional() const;  ///< the first; nullptr: it takes none
};

CommandFacts factsOf(const CLI::App& app);
/// Of cleave, `cleaveCli` as it is declared, and cleave-rank.
std::vector<CommandFacts> programFacts(const CLI::App& cleaveCli);

}  // namespace cleave::cli
