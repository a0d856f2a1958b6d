#pragma once
/// The commands of `cleave-cli`. Each registers its flags with CLI11 and sets an exit code when it is chosen.
#include <CLI/CLI.hpp>

namespace cleave::cli {

/// Set by the chosen command's callback.
struct Chosen {
  int exitCode = 0;
};

void addPlanCommand(CLI::App& app, Chosen& chosen);
/// preflight, world-sizes, pareto, best, compare
void addQuestionCommands(CLI::App& app, Chosen& chosen);
/// run, train, generate, bisect
void addRunCommands(CLI::App& app, Chosen& chosen);
void addCalibrateCommand(CLI::App& app, Chosen& chosen);
void addExportCommand(CLI::App& app, Chosen& chosen);
void addCheckCommand(CLI::App& app, Chosen& chosen);
void addDownloadCommand(CLI::App& app, Chosen& chosen);
void addInfoCommand(CLI::App& app, Chosen& chosen);
void addTraceCommand(CLI::App& app, Chosen& chosen);
void addRulesCommand(CLI::App& app, Chosen& chosen);
void addExplainCommand(CLI::App& app, Chosen& chosen);
/// These two print all commands of `app`, also those that are added after them.
void addManualCommand(CLI::App& app, Chosen& chosen);
void addCompletionCommand(CLI::App& app, Chosen& chosen);

}  // namespace cleave::cli
