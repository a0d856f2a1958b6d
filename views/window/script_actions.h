#pragma once
/// What the commands of a script do to the window. Each function is a verb's `perform` (script_verbs.h has the rows):
/// its values are the arguments in the row's order, checked, and empty if left out. Functions whose name begins with
/// `check` are a verb's `checkAnswer`. Failures are Negative or Environment. GUI thread.
#include "views/window/script_jobs.h"

namespace cleave::views {

class ScriptActions {
 public:
  /// `folder`: for pictures and sessions; empty: the working folder. `beside`: the script's folder; empty: none.
  ScriptActions(MainWindow& window, ScriptJobs& jobs, QString folder, QString beside);

  // Models and plans: script_actions.cpp
  Result<void> open(const QStringList& values);
  Result<void> openSample(const QStringList& values);
  Result<void> saveSession(const QStringList& values);
  Result<void> checkSession(const QStringList& values);
  Result<void> solve(const QStringList& values);
  Result<void> pin(const QStringList& values);
  Result<void> showBranch(const QStringList& values);
  Result<void> applyRemedy(const QStringList& values);
  Result<void> applyFit(const QStringList& values);
  Result<void> computeFront(const QStringList& values);
  Result<void> checkFront(const QStringList& values);
  Result<void> computeWorldSizes(const QStringList& values);
  Result<void> askWhyNot(const QStringList& values);
  Result<void> checkWhyNot(const QStringList& values);
  Result<void> step(const QStringList& values);
  Result<void> nextConflict(const QStringList& values);
  Result<void> checkConflict(const QStringList& values);

  // Runs and the window: script_window.cpp
  Result<void> setRun(const QStringList& values);
  Result<void> runRanks(const QStringList& values);
  Result<void> bisect(const QStringList& values);
  Result<void> showSavedRun(const QStringList& values);
  Result<void> compareSavedRuns(const QStringList& values);
  Result<void> forgetRun(const QStringList& values);
  Result<void> wait(const QStringList& values);
  Result<void> stop(const QStringList& values);
  Result<void> quit(const QStringList&) { return {}; }
  Result<void> select(const QStringList& values);
  Result<void> expand(const QStringList& values);
  Result<void> search(const QStringList& values);
  Result<void> showView(const QStringList& values);
  Result<void> showPage(const QStringList& values);
  Result<void> raisePanel(const QStringList& values);
  Result<void> applyPreset(const QStringList& values);
  Result<void> colorBy(const QStringList& values);
  Result<void> setTheme(const QStringList& values);
  Result<void> resize(const QStringList& values);

  // Pictures: script_shots.cpp
  Result<void> shoot(const QStringList& values);
  Result<void> savePicture(const QStringList& values);

  // The words of choices, in the order of their enum.
  static std::vector<std::string> pageWords();
  static std::vector<std::string> presetWords();
  static std::vector<std::string> colorWords();

 private:
  Result<void> focus(const QString& name);
  Result<void> needSavedRun(int number);
  Result<QString> outputFile(const QString& name) const;
  Result<QPixmap> pictureOf(const QString& action, const QString& row);

  MainWindow& m_window;
  Session& m_session;
  ScriptJobs& m_jobs;
  QString m_folder;
  QString m_beside;
};

}  // namespace cleave::views
