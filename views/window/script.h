#pragma once
/// Drives the window without a user: `cleave --script FILE --screenshot DIR`, also offscreen.
///
/// One command per line. Blank lines and lines that begin with # are ignored:
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
/// `shot NAME of ACTION` triggers a menu entry (MainWindow names them: open-hub, export-plan), waits for its dialog,
/// selects that row of its list, takes a picture of window and dialog, and closes the dialog. Paths are relative to the
/// working folder, or else to the script's folder.
///
/// A command that needs a result (a step, a selection, a run) waits for earlier work. `solve` and `run` themselves
/// continue while the next lines are read, until `wait`. The whole file is parsed first: an unknown command or a
/// malformed argument exits with 2, and a failed command exits with 1. Both errors name the line.
#include <QEventLoop>
#include <QString>
#include <functional>
#include <vector>

#include "views/window/main_window.h"
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
  Result<void> open(const ScriptCommand& command);
  Result<void> solve(const QString& arguments);
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
  std::map<Activity, int> m_startedAt;              ///< line of the command that started the running job
  std::optional<std::pair<int, QString>> m_failed;  ///< line and message of the failed job
};

}  // namespace cleave::views
