#include "cli/commands.h"
#include "cli/console.h"

#include "pipeline/evaluate_rule.h"
#include "rules/rule.h"

#include <fstream>
#include <iostream>

namespace cleave::cli {
namespace {

constexpr std::size_t kMaxLineBytes = 1 << 20;

int listFamilies() {
  std::string text;
  for (const rules::Family& family : rules::families()) {
    text += fmt::format("{}: {}\n", family.name, family.summary);
    for (const std::string_view op : family.ops) text += fmt::format("    {}\n", op);
  }
  const auto written = writeOutput("-", text);
  return written ? 0 : report(written.error());
}

/// Answers every line, also a wrong one ({"error": ...}); the exit code is 3 when any line was wrong.
int evaluateLines(std::istream& lines) {
  int exit = 0;
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<std::string> answer = line.size() > kMaxLineBytes
                                     ? Result<std::string>(fail(ErrorCode::BadInput, "A line is longer than {} bytes.", kMaxLineBytes))
                                     : pipeline::evaluateRule(line);
    if (!answer) {
      exit = exitCode(answer.error().code);
      answer = pipeline::errorLine(answer.error());
    }
    if (!writeOutput("-", *answer + "\n")) return exitCode(ErrorCode::Environment);
  }
  return exit;
}

}  // namespace

void addRulesCommand(CLI::App& app, Chosen& chosen) {
  auto evaluate = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("rules", "List the operator families, or evaluate a rule");
  command->add_option("--eval", *evaluate, "JSON lines from a file, or - for stdin: "
                                           R"json({"op":"aten::sum.dim_IntList","args":[{"tensor":[2,8,4],"placement":"S(1)"},[2],false],"ranks":2})json");
  command->callback([evaluate, &chosen] {
    if (evaluate->empty()) {
      chosen.exitCode = listFamilies();
    } else if (*evaluate == "-") {
      chosen.exitCode = evaluateLines(std::cin);
    } else {
      std::ifstream file(*evaluate);
      chosen.exitCode = file ? evaluateLines(file) : report({ErrorCode::BadInput, fmt::format("{} cannot be read.", *evaluate)});
    }
  });
}

}  // namespace cleave::cli
