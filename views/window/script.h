#pragma once
/// Drives the window without a user: `cleave --script FILE --screenshot DIR`, also offscreen. docs/scripts.md describes
/// the language; script_verbs.h has its commands.
///
///     ScriptRunner runner(window, *parseScript("open MODEL\nwait\nshot graph"), "shots");
///     return runner.run();
///
/// A command that needs a result (a step, a selection, a run) waits for earlier work. `solve` and `run` themselves
/// continue while the next lines are read, until `wait`. The whole file is parsed first: an unknown command or a
/// malformed argument exits with 2, and a failed command exits with 1. Both errors name the line. Paths are relative to
/// the working folder, or else to the script's folder.
#include <QString>
#include <vector>

#include "views/window/script_actions.h"
#include "views/window/script_parse.h"

namespace cleave::views {

class ScriptRunner : public QObject {
  Q_OBJECT
 public:
  /// `folder`: for the screenshots; empty: the working folder. `beside`: the script's folder; empty: none.
  ScriptRunner(MainWindow& window, std::vector<ScriptCommand> commands, QString folder, QString beside = {},
               QObject* parent = nullptr);
  /// Blocks in an event loop until the script ends, and returns the exit code. Errors go to stderr.
  int run();

 private:
  Result<void> execute(const ScriptCommand& command);

  std::vector<ScriptCommand> m_commands;
  ScriptJobs m_jobs;
  ScriptActions m_actions;
};

}  // namespace cleave::views
