#include "cli/manual.h"

#include "base/result.h"
#include "base/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string_view>

namespace cleave::cli {
namespace {

/// "--ranks, -n INT", "[MODEL]".
std::string usage(const OptionFacts& option) {
  if (option.isPositional) return option.name;
  std::string text = option.shortName.empty() ? option.name : option.shortName + ", " + option.name;
  if (!option.isFlag()) text += " " + option.takes;
  return text;
}

/// "cleave-cli plan [OPTIONS] MODEL"
std::string synopsis(const std::string& called, const CommandFacts& command) {
  std::string text = called;
  if (!command.commands.empty()) text += " COMMAND";
  text += " [OPTIONS]";
  for (const OptionFacts& option : command.options) {
    if (option.isPositional) text += option.isRequired ? " " + option.name : " [" + option.name + "]";
  }
  return text;
}

std::string whatItDoes(const OptionFacts& option) {
  std::string text = option.description;
  if (!option.unlessGiven.empty()) text += fmt::format(" [default: {}]", option.unlessGiven);
  if (!option.variable.empty()) text += fmt::format(" [variable: {}]", option.variable);
  return text;
}

std::string markdownCell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

void addMarkdown(std::string& text, const std::string& called, const CommandFacts& command, std::string_view heading) {
  text += fmt::format("\n{} {}\n\n{}\n\n`{}`\n", heading, called, command.description, synopsis(called, command));
  if (!command.commands.empty()) {
    text += "\n| command | |\n|---|---|\n";
    for (const CommandFacts& sub : command.commands)
      text += fmt::format("| [{}](#{}-{}) | {} |\n", sub.name, called, sub.name, markdownCell(sub.description));
  }
  text += "\n| option | |\n|---|---|\n";
  for (const OptionFacts& option : command.options) {
    // A bar ends a cell, in code too.
    std::string code;
    for (const char c : usage(option) + (option.isPositional ? " " + option.takes : ""))
      code += c == '|' ? "\\|" : std::string(1, c);
    text += fmt::format("| `{}` | {} |\n", code, markdownCell(whatItDoes(option)));
  }
  for (const CommandFacts& sub : command.commands) addMarkdown(text, called + " " + sub.name, sub, "###");
}

/// Escapes what roff would read as a command.
std::string roff(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("…")) {
      escaped += "...";
      i += std::string_view("…").size() - 1;
    } else if (text[i] == '\\') {
      escaped += "\\e";
    } else if (text[i] == '-') {
      escaped += "\\-";
    } else {
      escaped += text[i] == '\n' ? ' ' : text[i];
      if (text[i] == ',' && i + 1 < text.size() && text[i + 1] != ' ') escaped += "\\:";  // a line may end there
    }
  }
  return escaped;
}

/// Wraps a paragraph.
std::string filled(std::string_view text) {
  constexpr std::size_t kWidth = 76;
  std::string lines, line;
  const auto end = [&] {
    if (line.starts_with('.') || line.starts_with('\'')) lines += "\\&";
    lines += line + '\n';
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto next = std::min(text.find(' ', at), text.size());
    const std::string word = roff(text.substr(at, next - at));
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) end();
    line += (line.empty() ? "" : " ") + word;
    at = next + 1;
  }
  end();
  return lines;
}

void addOptions(std::string& page, const CommandFacts& command) {
  for (const OptionFacts& option : command.options) {
    const std::string takes = option.isPositional ? " " + option.takes : "";
    page += fmt::format(".TP\n.B {}\n{}", roff(usage(option) + takes), filled(whatItDoes(option)));
  }
}

struct Paragraph {
  std::string_view name, text;
};
constexpr Paragraph kExitStatus[] = {
    {"0", "Success."},
    {"1", "No plan exists, or outputs differ."},
    {"2", "The arguments are wrong."},
    {"3", "An input file is missing or wrong."},
    {"4", "The machine lacks a device, memory, a network or a display."},
    {"5", "A rank failed."},
    {"130", "Cancelled."},
};
constexpr Paragraph kEnvironment[] = {
    {"CLEAVE_TORCH_DIR",
     "Folder of an installed torch package to use instead of the LibTorch that Cleave ships, such as "
     "/opt/venv/lib/python3.11/site-packages/torch. Its version must be the same."},
    {"CLEAVE_RESOURCES", "A folder of device profiles, samples and models to use instead of the installed one."},
    {"CUDA_VISIBLE_DEVICES", "The GPUs that ranks may use."},
    {"XDG_CONFIG_HOME, XDG_DATA_HOME", "Folders where the window saves its settings and its last runs."},
};

/// The day of SOURCE_DATE_EPOCH, which package builds set to get the same page from the same sources; else today.
std::string dayOfWriting() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  std::time_t at = epoch ? std::strtoll(epoch, nullptr, 10) : std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&at, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

void addParagraphs(std::string& page, std::string_view title, std::span<const Paragraph> paragraphs) {
  page += fmt::format(".SH {}\n", title);
  for (const Paragraph& paragraph : paragraphs)
    page += fmt::format(".TP\n.B {}\n{}", roff(paragraph.name), filled(paragraph.text));
}

}  // namespace

std::string manualMarkdown(const std::vector<CommandFacts>& programs) {
  std::string text =
      "# The command line\n\n"
      "`cleave-cli manual` prints this page; a test compares the two. [README.md](../README.md#five-minutes) has "
      "examples. `FILE|-` takes a file, or - for a standard stream; `{on,off}` takes one of these words.\n";
  for (const CommandFacts& program : programs) addMarkdown(text, program.name, program, "##");
  return text;
}

std::string manPage(const CommandFacts& program) {
  std::string title = program.name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string what = program.description;
  if (what.ends_with('.')) what.pop_back();
  std::string page =
      fmt::format(".TH {} 1 {} \"Cleave {}\" \"Cleave\"\n.ad l\n", roff(title), dayOfWriting(), version());
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(program.name), roff(what));
  page += fmt::format(".SH SYNOPSIS\n.B {}\n", roff(synopsis(program.name, program)));
  page += fmt::format(".SH DESCRIPTION\n{}", filled(program.description));
  page += ".SH OPTIONS\n";
  addOptions(page, program);
  if (!program.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandFacts& command : program.commands) {
    page += fmt::format(".SS {}\n{}.PP\n.B {}\n", roff(command.name), filled(command.description + "."),
                        roff(synopsis(program.name + " " + command.name, command)));
    addOptions(page, command);
  }
  addParagraphs(page, "EXIT STATUS", kExitStatus);
  addParagraphs(page, "ENVIRONMENT", kEnvironment);
  page += ".SH SEE ALSO\n";
  std::string others;
  for (const char* other : {"cleave", "cleave-cli", "cleave-rank"}) {
    if (program.name == other) continue;
    page += fmt::format("{}.BR {} (1)", others, roff(other));
    others = ",\n";
  }
  return page + "\n";
}

}  // namespace cleave::cli
