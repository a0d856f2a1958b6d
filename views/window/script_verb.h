#pragma once
/// What the table of a script's commands (script_verbs.h) contains: a row for each verb, with its arguments, its help,
/// its function, and the states that it waits for. Plain data, without the functions that make and read it.
#include <QStringList>

#include "base/result.h"
#include "views/session/jobs.h"
#include "views/window/script_forms.h"

namespace cleave::views {

class ScriptActions;

/// A state of the window that a command waits for.
enum class ScriptState : std::uint8_t {
  Now,
  ModelOpened,     ///< no model is being opened
  RunEnded,        ///< if ranks run: as Settled
  JobsIdle,        ///< no job is running
  Settled,         ///< no job, layout or refresh is pending
  StepShown,       ///< the search's debugger shows the wanted step
  Drawn,           ///< the canvas is complete
  SessionWritten,  ///< the session's file is written
  Waited,          ///< the command has waited by itself
};

/// What must be open before a command starts. It waits while a job may still open it.
enum class ScriptNeed : std::uint8_t { Nothing, Model, Search };

struct ScriptArgument {
  std::string name;  ///< in usage and errors: "PATH", "KEY=VALUE"
  ScriptForm form;
  bool isRequired = true;
  bool isRepeated = false;  ///< each word of the rest of the line is one
  std::string prefix = {};  ///< written before it: "by=", "of "; empty: nothing
};

/// A row. A value is the text of an argument, checked; empty: left out.
struct ScriptVerb {
  std::string name;
  std::vector<ScriptArgument> arguments = {};
  std::string help;
  std::string example;  ///< a whole line
  ScriptNeed needs = ScriptNeed::Nothing;
  ScriptState startsWhen = ScriptState::Now;
  std::vector<Activity> jobs = {};          ///< jobs that it starts: their failure is reported with its line
  ScriptState endsWhen = ScriptState::Now;  ///< with Now, jobs continue while the next lines are read
  Result<void> (ScriptActions::*perform)(const QStringList& values) = nullptr;
  /// After `endsWhen`: the answer's failure, if the answer is negative. Null: without.
  Result<void> (ScriptActions::*checkAnswer)(const QStringList& values) = nullptr;
  bool endsScript = false;
  std::string section = {};  ///< heading in docs/scripts.md
};

}  // namespace cleave::views
