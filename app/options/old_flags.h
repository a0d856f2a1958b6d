#pragma once
/// Flags of earlier versions that a command replaces. They still work; help, manual and completions do not list them,
/// and standard error names the command to use instead.
#include <CLI/CLI.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cleave::options {

/// The group of options that help, manual and completions leave out. CLI11 hides options without a group, too, but then
/// its errors do not name them.
inline constexpr const char* kHiddenGroup = "Deprecated";

/// Help without the options of kHiddenGroup.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool isPositional, std::vector<const CLI::Option*> options) const override;
};

class OldFlags {
 public:
  /// `instead`: the command line that replaces the option, "pareto MODEL".
  CLI::Option* add(CLI::Option* option, std::string instead);
  const std::vector<std::pair<CLI::Option*, std::string>>& all() const { return m_flags; }
  /// Prints a line for each of them that was given to the command `name`.
  void hint(const std::string& name) const;

 private:
  std::vector<std::pair<CLI::Option*, std::string>> m_flags;
};

}  // namespace cleave::options
