#include "cli/commands.h"
#include "cli/console.h"

#include "base/files.h"
#include "libtorch/verify/verify_rules.h"
#include "pipeline/solve/evaluate_rule.h"
#include "rules/rule.h"
#include "settings/option_types.h"

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

/// Reads the next line, at most kMaxLineBytes + 1 bytes of it: a file without line ends must not fill the memory.
bool readLine(std::istream& lines, std::string& line) {
  constexpr int kEnd = std::char_traits<char>::eof();
  line.clear();
  int c = lines.rdbuf()->sbumpc();
  if (c == kEnd) return false;
  for (; c != kEnd && c != '\n'; c = lines.rdbuf()->sbumpc()) {
    if (line.size() <= kMaxLineBytes) line += static_cast<char>(c);
  }
  return true;
}

/// Answers every line, a wrong one with {"error": ...}. The exit code is 3 if any line was wrong.
int evaluateLines(std::istream& lines) {
  int exit = 0;
  std::string line;
  while (readLine(lines, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<std::string> answer =
        line.size() > kMaxLineBytes
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

/// The example, the rule's claim, and the result of the kernels.
std::string textOf(const torch_verify::Finding& finding) {
  using Kind = torch_verify::Finding::Kind;
  std::string text = fmt::format("{}: {}\n", torch_verify::toText(finding.kind), finding.call);
  const bool isMissed = finding.kind == Kind::Missed;  // its claim is what would have been true
  if (const std::string& said = isMissed ? finding.detail : finding.claim; !said.empty())
    text += fmt::format("  rule:    {}\n", said);
  return text + fmt::format("  kernels: {}\n", isMissed ? finding.claim : finding.detail);
}

/// Runs every claim of the rules on random tensors and prints those that the kernels refute, each with a reproduction.
Result<int> verify(const torch_verify::VerifyOptions& options) {
  CLEAVE_TRY(const auto verified, torch_verify::verifyRules(options, consoleProgress()));
  endProgress();
  std::string text;
  for (const torch_verify::Finding& finding : verified.findings) text += textOf(finding);
  text += fmt::format(
      "{} applications of rules, {} claims run on shards, {} conflicts tried for missed splits (seed {}): {}\n",
      verified.calls, verified.claims, verified.conflicts, options.seed,
      verified.findings.empty() ? "all claims hold" : fmt::format("{} findings", verified.findings.size()));
  CLEAVE_TRY_VOID(writeOutput("-", text));
  return verified.findings.empty() ? 0 : exitCode(ErrorCode::Negative);
}

struct RulesCommand {
  std::string evaluate;
  bool verifies = false;
  torch_verify::VerifyOptions options;

  int run() const {
    if (verifies) {
      const auto result = verify(options);
      return result ? *result : report(result.error());
    }
    if (evaluate.empty()) return listFamilies();
    if (evaluate == "-") return evaluateLines(std::cin);
    std::error_code ignored;
    std::ifstream file(evaluate);
    return file && !fs::is_directory(evaluate, ignored)
               ? evaluateLines(file)
               : report({ErrorCode::BadInput, fmt::format("{} cannot be read.", evaluate)});
  }
};

}  // namespace

void addRulesCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<RulesCommand>();
  CLI::App* command =
      app.add_subcommand("rules", "List the operator families, evaluate a rule, or prove the rules by running them");
  CLI::Option* evaluate =
      command
          ->add_option("--eval", state->evaluate,
                       "JSON lines from a file, or - for stdin: "
                       R"json({"op":"aten::sum.dim_IntList","args":[{"tensor":[2,8,4],"placement":"S(1)"},[2],)json"
                       R"json(false],"ranks":2})json")
          ->type_name(option_types::kFileOrDash);
  CLI::Option* verifies =
      command->add_flag("--verify", state->verifies, "Run every rule's claims on random tensors, unsplit and in shards")
          ->excludes(evaluate);
  command->add_option("--op", state->options.op, "With --verify: this operator only")->needs(verifies);
  command->add_option("--seed", state->options.seed, "With --verify: seed of sizes and values")
      ->needs(verifies)
      ->capture_default_str();
  command->callback([state, &chosen] { chosen.exitCode = state->run(); });
}

}  // namespace cleave::cli
