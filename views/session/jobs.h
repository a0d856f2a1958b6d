#pragma once
/// The long work of a session: opening, solving and running, one after the other on one worker, and which of them is
/// under way. A job that fails leaves the session as it was and says one sentence through Notices. GUI thread only.
///
///     jobs.start(Activity::Solving, tr("Solving"), [=](const Progress& progress) -> Worker::Completion { ... });
///     jobs.end(Activity::Solving, true, tr("Solved for 2 ranks"));   // in the completion
#include "hub/download_state.h"
#include "views/base/worker.h"
#include "views/session/notices.h"

namespace cleave::views {

enum class Activity { Idle, Opening, Solving, Running };

class Jobs : public QObject {
  Q_OBJECT
 public:
  explicit Jobs(Notices& notices, QObject* parent = nullptr);

  Activity activity() const { return m_activity; }
  /// Nothing is under way, nor about to be told.
  bool isIdle() const { return m_activity == Activity::Idle && !m_worker.isBusy(); }
  /// A newer job of the same kind replaces the older one.
  void start(Activity what, const QString& title, Worker::Work work);
  /// It is no longer under way; what became of it follows with `end`.
  void settle(Activity what);
  void end(Activity what, bool hasSucceeded, const QString& sentence);
  /// The user wants the running work to end: a stopped search keeps what was recorded.
  void stop();
  /// What a job hears of a Hub, told here; for its thread.
  hub::Watcher watcher();
  void cancel() { m_worker.cancelAll(); }  ///< the jobs alone
  Worker::Courier courier() const { return m_worker.courier(); }
  Worker& worker() { return m_worker; }

 signals:
  void activityChanged();
  void downloading(const cleave::hub::DownloadState& state);
  void progressed(const QString& stage, qint64 done, qint64 total);
  /// What ended, and whether it succeeded; `sentence` may be empty.
  void ended(cleave::views::Activity what, bool hasSucceeded, const QString& sentence);
  void stopWanted();

 private:
  void setActivity(Activity activity);
  Notices& m_notices;
  Activity m_activity = Activity::Idle;
  Worker m_worker;
};

}  // namespace cleave::views
