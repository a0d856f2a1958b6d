#include "views/window/script.h"

#include "views/base/text.h"

namespace cleave::views {

ScriptRunner::ScriptRunner(MainWindow& window, std::vector<ScriptCommand> commands, QString folder, QString beside,
                           QObject* parent)
    : QObject(parent),
      m_commands(std::move(commands)),
      m_jobs(window),
      m_actions(window, m_jobs, std::move(folder), std::move(beside)) {}

int ScriptRunner::run() {
  const auto say = [](int line, const std::string& text) {
    fmt::print(stderr, "cleave: script line {}: {}\n", line, text);
  };
  const auto hasFailed = [&] {
    const auto& failure = m_jobs.failure();
    if (failure) say(failure->line, toStd(failure->sentence));
    return failure.has_value();
  };
  for (const ScriptCommand& command : m_commands) {
    const auto done = execute(command);
    if (hasFailed()) return 1;
    if (!done) {
      say(command.line, done.error().message);
      return 1;
    }
    if (command.verb->endsScript) break;
  }
  // The end of the file stops all running work, as closing the window would.
  return hasFailed() ? 1 : 0;
}

Result<void> ScriptRunner::execute(const ScriptCommand& command) {
  const ScriptVerb& verb = *command.verb;
  m_jobs.enter(command.line);
  CLEAVE_TRY_VOID(m_jobs.need(verb.needs));
  CLEAVE_TRY_VOID(m_jobs.reach(verb.startsWhen));
  if (m_jobs.failure()) return {};
  m_jobs.expect(verb.jobs);
  CLEAVE_TRY_VOID((m_actions.*verb.perform)(command.values));
  CLEAVE_TRY_VOID(m_jobs.reach(verb.endsWhen));
  if (m_jobs.failure() || !verb.checkAnswer) return {};
  return (m_actions.*verb.checkAnswer)(command.values);
}

}  // namespace cleave::views
