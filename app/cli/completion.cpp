#include "cli/completion.h"

#include "launch/shell_word.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace cleave::cli {
namespace {

constexpr std::string_view kMadeBy =
    "# Completes cleave, cleave-cli and cleave-rank. Made by `cleave-cli completion`.\n";

std::string words(const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, " ")); }

std::vector<std::string> optionNames(const CommandFacts& command) {
  std::vector<std::string> names;
  for (const OptionFacts& option : command.options) {
    if (!option.isPositional) names.push_back(option.name.empty() ? option.shortName : option.name);
  }
  return names;
}

std::vector<std::string> commandNames(const CommandFacts& program) {
  std::vector<std::string> names;
  for (const CommandFacts& command : program.commands) names.push_back(command.name);
  return names;
}

std::string functionName(const CommandFacts& program) {
  std::string name = "_" + program.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Until its first end of a sentence or colon: what fits beside a word in a list.
std::string shortly(const std::string& description) {
  constexpr std::size_t kMost = 60;
  std::string text = description.substr(0, description.find_first_of(":;\n"));
  if (text.size() <= kMost) return text;
  text.resize(text.rfind(' ', kMost));
  return text + " ...";
}

// ---- bash

/// What the value of an option, or a word without one, is completed with.
std::string bashValue(const OptionFacts& option) {
  if (const auto values = option.values(); !values.empty()) return "_cleave_words " + shellWord(words(values));
  const PathParts parts = pathParts(option);
  if (!parts.isPath) return ":";
  if (parts.anyFile) return "_cleave_paths '*'";
  std::string text = "_cleave_paths";
  for (const std::string& ending : parts.endings) text += " '*" + ending + "'";
  return text;
}

std::string bashCase(const std::string& pattern, const CommandFacts& command) {
  std::string text;
  for (const OptionFacts& option : command.options) {
    if (!option.isPositional && !option.isFlag())
      text += fmt::format("    {}:{}) {}; return ;;\n", pattern, option.name, bashValue(option));
  }
  return text;
}

std::string bashRest(const std::string& pattern, const CommandFacts& command) {
  const OptionFacts* positional = command.positional();
  return fmt::format("    {})\n      if [[ $cur == -* ]]; then _cleave_words {}; else {}; fi ;;\n", pattern,
                     shellWord(words(optionNames(command))), positional ? bashValue(*positional) : ":");
}

constexpr const char* kBashHelpers = R"(
_cleave_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
# Folders, and files whose names fit one of the patterns.
_cleave_paths() {
  local IFS=$'\n' pattern
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -d -- "$cur"))
  for pattern; do COMPREPLY+=($(compgen -f -X "!$pattern" -- "$cur")); done
  [ ${#COMPREPLY[@]} -eq 0 ] || COMPREPLY=($(printf '%s\n' "${COMPREPLY[@]}" | sort -u))
}
)";

// ---- zsh

std::string zshAction(const OptionFacts& option) {
  if (const auto values = option.values(); !values.empty()) return "(" + words(values) + ")";
  const PathParts parts = pathParts(option);
  if (!parts.isPath) return " ";
  if (parts.anyFile) return "_files";
  if (parts.endings.empty()) return "_files -/";
  std::string endings;
  for (const std::string& ending : parts.endings) endings += (endings.empty() ? "" : "|") + ending.substr(1);
  return fmt::format("_files -g \"*.({})\"", endings);
}

std::string zshSpec(const OptionFacts& option) {
  if (option.isPositional) return shellWord("1:" + option.name + ":" + zshAction(option));
  std::string description;
  for (const char c : shortly(option.description))
    description += (std::string_view("[]:\\").find(c) != std::string_view::npos ? "\\" : "") + std::string(1, c);
  std::string spec = "*" + option.name + "[" + description + "]";
  const bool isNamed = !option.isFlag() && std::isalpha(static_cast<unsigned char>(option.takes[0])) != 0;
  if (!option.isFlag())
    spec +=
        fmt::format(":{}:{}", isNamed ? option.takes.substr(0, option.takes.find('|')) : "value", zshAction(option));
  return shellWord(spec);
}

std::string zshArguments(const CommandFacts& command, std::string_view indent) {
  std::string text = fmt::format("{}_arguments -S", indent);
  for (const OptionFacts& option : command.options) text += fmt::format(" \\\n{}  {}", indent, zshSpec(option));
  return text + "\n";
}

/// The script itself is the function _cleave.
std::string zshFunction(const CommandFacts& program) { return "_" + functionName(program); }

std::string zshProgram(const CommandFacts& program) {
  std::string text = zshFunction(program) + "() {\n";
  if (program.commands.empty()) return text + zshArguments(program, "  ") + "}\n";
  text += "  local curcontext=$curcontext state line\n  local -a commands\n  _arguments -C -S";
  for (const OptionFacts& option : program.options) text += " \\\n    " + zshSpec(option);
  text += " \\\n    '1: :->command' '*:: :->arguments'\n  case $state in\n    command)\n      commands=(\n";
  for (const CommandFacts& command : program.commands)
    text += fmt::format("        {}\n", shellWord(command.name + ":" + shortly(command.description)));
  text += "      )\n      _describe command commands ;;\n    arguments)\n      case $words[1] in\n";
  for (const CommandFacts& command : program.commands)
    text += fmt::format("        {})\n{}          ;;\n", command.name, zshArguments(command, "          "));
  return text + "      esac ;;\n  esac\n}\n";
}

// ---- fish

std::string fishOption(const std::string& program, const std::string& condition, const OptionFacts& option) {
  std::string text = fmt::format("complete -c {}{}", program, condition);
  if (!option.isPositional && !option.name.empty()) text += " -l " + option.name.substr(2);
  if (!option.isPositional && !option.shortName.empty()) text += " -s " + option.shortName.substr(1);
  const auto values = option.values();
  const PathParts parts = pathParts(option);
  if (!values.empty())
    text += " -x -a " + shellWord(words(values));
  else if (parts.isPath && parts.anyFile)
    text += " -r -F";
  else if (parts.isPath)
    text += fmt::format(" {} -a {}", option.isPositional ? "-f" : "-x",
                        shellWord("(__cleave_paths " + words(parts.endings) + ")"));
  else if (!option.isFlag())
    text += " -x";
  return text + (option.isPositional ? "" : " -d " + shellWord(shortly(option.description))) + "\n";
}

constexpr const char* kFishHelpers = R"(
# Folders, and files with one of these endings.
function __cleave_paths
    for path in (__fish_complete_path (commandline -ct))
        set -l name (string split \t -- $path)[1]
        if string match -q '*/' -- $name
            echo $path
            continue
        end
        for ending in $argv
            string match -q -- "*$ending" $name; and echo $path
        end
    end
end
)";

}  // namespace

PathParts pathParts(const OptionFacts& option) {
  PathParts parts;
  for (std::size_t at = 0; at <= option.takes.size();) {
    const auto end = std::min(option.takes.find('|', at), option.takes.size());
    const std::string part = option.takes.substr(at, end - at);
    parts.anyFile |= part == "FILE";
    parts.folder |= part == "FOLDER";
    if (part.starts_with('.')) parts.endings.push_back(part);
    at = end + 1;
  }
  parts.isPath = parts.anyFile || parts.folder || !parts.endings.empty();
  return parts;
}

std::string bashCompletion(const std::vector<CommandFacts>& programs) {
  std::string text(kMadeBy);
  text += kBashHelpers;
  for (const CommandFacts& program : programs) {
    const std::string function = functionName(program);
    text +=
        fmt::format("\n{}() {{\n  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}", function);
    text += " command= word\n  COMPREPLY=()\n";
    if (!program.commands.empty()) {
      text += fmt::format(
          "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n    case $word in {}) command=$word; break ;; "
          "esac\n  done\n",
          fmt::join(commandNames(program), "|"));
    }
    text += "  case $command:$prev in\n" + bashCase("", program);
    for (const CommandFacts& command : program.commands) text += bashCase(command.name, command);
    text += "  esac\n  case $command in\n";
    for (const CommandFacts& command : program.commands) text += bashRest(command.name, command);
    if (program.commands.empty())
      text += bashRest("*", program);
    else
      text += fmt::format("    *) _cleave_words {} ;;\n",
                          shellWord(words(commandNames(program)) + " " + words(optionNames(program))));
    text += fmt::format("  esac\n}}\ncomplete -F {} {}\n", function, program.name);
  }
  return text;
}

std::string zshCompletion(const std::vector<CommandFacts>& programs) {
  std::string text = "#compdef cleave cleave-cli cleave-rank\n" + std::string(kMadeBy);
  for (const CommandFacts& program : programs) text += "\n" + zshProgram(program);
  text += "\ncase $service in\n";
  for (const CommandFacts& program : programs)
    text += fmt::format("  {}) {} \"$@\" ;;\n", program.name, zshFunction(program));
  return text + "esac\n";
}

std::string fishCompletion(const std::vector<CommandFacts>& programs) {
  std::string text = std::string(kMadeBy) + kFishHelpers;
  for (const CommandFacts& program : programs) {
    const bool hasCommands = !program.commands.empty();
    const std::string first = hasCommands ? " -n __fish_use_subcommand" : "";
    text += fmt::format("\ncomplete -c {} -f\n", program.name);
    for (const CommandFacts& command : program.commands)
      text += fmt::format("complete -c {}{} -a {} -d {}\n", program.name, first, command.name,
                          shellWord(shortly(command.description)));
    for (const OptionFacts& option : program.options) text += fishOption(program.name, first, option);
    for (const CommandFacts& command : program.commands) {
      const std::string behind = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
      for (const OptionFacts& option : command.options) text += fishOption(program.name, behind, option);
    }
  }
  return text;
}

}  // namespace cleave::cli
