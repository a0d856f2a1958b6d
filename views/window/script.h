#pragma once
/// Drives the window without a person: `cleave --script FILE --screenshot DIR`, also offscreen.
///
/// One command a line; blank lines and lines that begin with # do not count:
///
///     open PATH (a model, a plan, a recorded search or a session) · sample NAME · solve [engine=E] [ranks=N]
///     [sequence_parallel=on|off|auto] [menu=optimum|full|auto] [profile=P] [budget=16GiB|none] [train=on|off]
///     [optimizer=O] [pin=SPEC]... · step +1|-1|N · next-conflict · select VALUE · expand SCOPE · pin SPEC · search
///     TEXT · colour by=axis|regret|time|memory|traffic|error · branch A|B|keep|drop · why-not VALUE PLACEMENT|STRATEGY
///     · remedy N · fit N · world-sizes · front · run [ranks=N] [backend=B] [steps=N] [optimizer=O] [lr=X]
///     [weight_decay=X] [clip=X|none] [accumulate=N] · set-run (the same, and starts nothing) · bisect · view graph|run
///     · page overview|lanes|memory|log|history · history N · compare N M · forget N · wait [MILLISECONDS] · stop ·
///     theme dark|light · resize WxH · preset inspect|debug|run · panel NAME · shot NAME [of ACTION [ROW]] · picture
///     NAME.svg|pdf|png · save-session NAME.cleave · quit
///
/// `shot NAME of ACTION` does what a menu's entry does (MainWindow names them: open-hub, export-plan), waits for the
/// dialog that it opens, chooses that row of its list, takes both, and closes it again. Paths are those of the working
/// folder, or else beside the script.
///
/// A command that needs a result (a step, a selection, a run) waits for the work before it; `solve` and `run`
/// themselves go on while the next lines are read, until `wait`. The file is read whole before anything happens: an
/// unknown command or a malformed argument ends with 2, a command that fails with 1; both name the line.
#include <QEventLoop>
#include <QString>
#include <functional>
#include <vector>

#include "views/window/main_window.h"

namespace cleave::views {

struct ScriptCommand {
  int line = 0;  ///< 1-based
  QString name;
  QString rest;  ///< as written, trimmed
};

/// BadUsage names the line of the first unknown command or malformed argument.
Result<std::vector<ScriptCommand>> parseScript(const QString& text);

class ScriptRunner : public QObject {
  Q_OBJECT
 public:
  /// `folder` takes the screenshots; empty: the working folder. `beside`: where the script itself is; empty: nowhere.
  ScriptRunner(MainWindow& window, std::vector<ScriptCommand> commands, QString folder, QString beside = {},
               QObject* parent = nullptr);
  /// Blocks in an event loop until the script ended; the exit code. Errors go to stderr.
  int run();

 private:
  Result<void> execute(const ScriptCommand& command);
  Result<void> open(const ScriptCommand& command);
  Result<void> solve(const QString& arguments);
  Result<void> readSolveArgument(const QString& key, const QString& value, Demands& demands);
  Result<void> showBranch(const QString& which);
  Result<void> askWhyNot(const QString& arguments);
  Result<void> applyRemedy(int number);
  Result<void> applyFit(int number);
  Result<void> step(const QString& argument);
  Result<void> setRun(const QString& arguments);
  Result<void> runRanks(const QString& arguments);
  Result<void> bisect();
  Result<void> showHistory(const ScriptCommand& command);
  Result<void> select(const QString& name);
  Result<void> shoot(const QString& name);
  Result<QPixmap> pictureOf(const QString& action, const QString& row);
  Result<void> savePicture(const QString& name);
  Result<void> saveSession(const QString& name);
  Result<QString> outputFile(const QString& name) const;
  Result<void> wait();
  Result<void> pause(int milliseconds);
  Result<void> waitUntilDrawn();
  Result<void> waitUntil(const std::function<bool()>& isDone, const char* what);
  Result<void> needsModel();
  Result<void> needsTrace();

  MainWindow& m_window;
  Session& m_session;
  std::vector<ScriptCommand> m_commands;
  QString m_folder;
  QString m_beside;
  int m_line = 0;
  std::map<Activity, int> m_startedAt;              ///< line of the command whose work goes on
  std::optional<std::pair<int, QString>> m_failed;  ///< line and sentence of work that failed
};

}  // namespace cleave::views
