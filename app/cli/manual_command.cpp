#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/manual.h"
#include "cli/manual_formats.h"
#include "settings/option_types.h"

namespace cleave::cli {
namespace {

struct ManualCommand {
  std::string format = "markdown", program = "cleave-cli";
  bool isOfFiles = false;

  Result<void> run(const CLI::App& app) const {
    if (isOfFiles) return writeOutput("-", formatTables());
    const auto programs = programFacts(app);
    if (format == "markdown") return writeOutput("-", manualMarkdown(programs));
    for (const CommandFacts& facts : programs) {
      if (facts.name == program) return writeOutput("-", manPage(facts));
    }
    return fail(ErrorCode::BadUsage, "There is no program {}.", program);
  }
};

std::string completionFor(const std::string& shell, const std::vector<CommandFacts>& programs) {
  if (shell == "bash") return bashCompletion(programs);
  return shell == "zsh" ? zshCompletion(programs) : fishCompletion(programs);
}

/// `name`: "manual", or "reference" as earlier versions called it.
CLI::App* addManual(CLI::App& app, Chosen& chosen, const std::string& name) {
  auto state = std::make_shared<ManualCommand>();
  CLI::App* command = app.add_subcommand(name, "Print all commands and options, as docs/cli.md or as a man page");
  command->add_option("--format", state->format, "markdown: all programs; man: the page of --program")
      ->check(CLI::IsMember({"markdown", "man"}))
      ->capture_default_str();
  command->add_option("--program", state->program, "Program of the man page")
      ->check(CLI::IsMember({"cleave", "cleave-cli", "cleave-rank"}))
      ->capture_default_str();
  command->add_flag("--formats", state->isOfFiles, "Print the tables of docs/file-formats.md")->group("");  // hidden
  command->callback([state, &app, &chosen] {
    const auto result = state->run(app);
    chosen.exitCode = result ? 0 : report(result.error());
  });
  return command;
}

}  // namespace

void addManualCommand(CLI::App& app, Chosen& chosen) {
  addManual(app, chosen, "manual");
  addManual(app, chosen, "reference")->group("");  // hidden: `--engine reference` is something else
}

void addCompletionCommand(CLI::App& app, Chosen& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that lets a shell complete commands, options and files");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}))->required();
  command->callback([shell, &app, &chosen] {
    const auto result = writeOutput("-", completionFor(*shell, programFacts(app)));
    chosen.exitCode = result ? 0 : report(result.error());
  });
}

}  // namespace cleave::cli
