#include "cli/program.h"

#include "about/problem_report.h"
#include "base/edit_distance.h"
#include "base/json.h"
#include "base/result.h"
#include "base/secret.h"
#include "base/standard_streams.h"
#include "cli/commands.h"
#include "libtorch/bridge/errors.h"
#include "options/old_flags.h"
#include "options/standard_flags.h"

#include <unistd.h>

#include <cstdio>
#include <exception>

namespace cleave::cli {
namespace {

/// Handles an uncaught exception: of a thread, or of a library that is out of memory.
[[noreturn]] void reportAndExit() {
  const Error error = bridge::uncaughtError(ErrorCode::RankFailed);
  std::fprintf(stderr, "cleave-cli: %s\n", error.message.c_str());
  ::_exit(exitCode(error.code));
}

/// The first word that is not a command, and the nearest command; empty: there is no word.
std::string unknownCommand(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return {};
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  const std::string nearest = nearestName(words.front(), commands);
  return fmt::format("{} is not a command.{}", quotedText(words.front()),
                     nearest.empty() ? "" : fmt::format(" Did you mean {}?", nearest));
}

}  // namespace

int runProgram(int argc, char** argv) {
  hideSecretsOfEnvironment();
  holdStandardStreams();
  // A closed progress pipe must not end the program.
  failWritesInsteadOfEnding();
  std::set_terminate(reportAndExit);
  CLI::App app("Splits Transformer models across ranks and explains the split.", "cleave-cli");
  app.formatter(std::make_shared<options::HelpFormatter>());  // before the commands, which inherit it
  app.require_subcommand(1);
  options::addVersionFlag(app);
  app.add_flag_callback(
      options::kReportFlag,
      [] { throw CLI::CallForVersion(about::problemReport("cleave-cli"), 0); },  // prints, and ends the program
      options::kReportHelp);
  Chosen chosen;
  addPlanCommand(app, chosen);
  addQuestionCommands(app, chosen);
  addRunCommands(app, chosen);
  addCalibrateCommand(app, chosen);
  addExportCommand(app, chosen);
  addCheckCommand(app, chosen);
  addInfoCommand(app, chosen);
  addTraceCommand(app, chosen);
  addRulesCommand(app, chosen);
  addExplainCommand(app, chosen);
  addDownloadCommand(app, chosen);
  addCompletionCommand(app, chosen);
  addManualCommand(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ConversionError& error) {
    const std::string words = error.what();  // "Could not convert: --ranks = 1.5"
    const auto colon = words.find(": ");
    std::fprintf(stderr, "cleave-cli: %s: the option does not take this value. See COMMAND --help.\n",
                 words.substr(colon == std::string::npos ? 0 : colon + 2).c_str());
    return exitCode(ErrorCode::BadUsage);
  } catch (const CLI::RequiredError& error) {
    const std::string words = app.get_subcommands().empty() ? unknownCommand(app) : std::string();
    std::fprintf(stderr, "cleave-cli: %s\nRun cleave-cli --help, or cleave-cli COMMAND --help.\n",
                 words.empty() ? error.what() : words.c_str());
    return exitCode(ErrorCode::BadUsage);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cleave-cli: %s\nRun cleave-cli --help, or cleave-cli COMMAND --help.\n", error.what());
    return exitCode(ErrorCode::BadUsage);
  }
  return chosen.exitCode;
}

}  // namespace cleave::cli
