// cleave-cli: plans, runs, exports and inspects tensor-parallel splits of Transformer models.
#include "base/result.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "cli/commands.h"

#include <csignal>
#include <cstdio>

int main(int argc, char** argv) {
  cleave::holdStandardStreams();
  // Whoever reads the progress may go: that concerns neither the work nor its result. A reader of results that is gone
  // is an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Splits Transformer models across ranks, and says why.", "cleave-cli");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(cleave::version()));
  cleave::cli::Chosen chosen;
  cleave::cli::addPlanCommand(app, chosen);
  cleave::cli::addRunCommand(app, chosen);
  cleave::cli::addExportCommand(app, chosen);
  cleave::cli::addCheckCommand(app, chosen);
  cleave::cli::addInfoCommand(app, chosen);
  cleave::cli::addTraceCommand(app, chosen);
  cleave::cli::addRulesCommand(app, chosen);
  cleave::cli::addExplainCommand(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cleave-cli: %s\nRun cleave-cli --help, or cleave-cli COMMAND --help.\n", error.what());
    return cleave::exitCode(cleave::ErrorCode::BadUsage);
  }
  return chosen.exitCode;
}
