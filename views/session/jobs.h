#pragma once
/// The long jobs of a session: opening, solving and running, one after the other on one worker. A failed job leaves the
/// session unchanged and reports one sentence through Notices. GUI thread only.
///
///     jobs.start(Activity::Solving, QStringLiteral("Solving"), [=](const Progress& progress) -> Worker::Completion {
///     ... }); jobs.end(Activity::Solving, true, QStringLiteral("Solved for 2 ranks"));   // in the completion
#include "hub/download_state.h"
#include "views/session/notices.h"
#include "views/worker/worker.h"

namespace cleave::views {

enum class Activity { Idle, Opening, Solving, Running };

class Jobs : public QObject {
  Q_OBJECT
 public:
  explicit Jobs(Notices& notices, QObject* parent = nullptr);

  Activity activity() const { return m_activity; }
  /// No job is running, and no completion is pending.
  bool isIdle() const { return m_activity == Activity::Idle && !m_worker.isBusy(); }
  /// A newer job of the same kind replaces the older one.
  void start(Activity what, const QString& title, Worker::Work work);
  /// The job is not running any more. `end` follows with its result.
  void settle(Activity what);
  void end(Activity what, bool hasSucceeded, const QString& sentence);
  /// Asks the running job to end. A stopped search keeps its recorded steps.
  void stop();
  /// A watcher for Hub downloads that reports here. For use on the job's thread.
  hub::Watcher watcher();
  void cancel() { m_worker.cancelAll(); }  ///< only the jobs
  Worker::CompletionPoster completionPoster() const { return m_worker.completionPoster(); }
  Worker& worker() { return m_worker; }

 signals:
  void activityChanged();
  void downloading(const cleave::hub::DownloadState& state);
  void progressed(const QString& stage, qint64 done, qint64 total);
  /// The job that ended, and its success. `sentence` may be empty.
  void ended(cleave::views::Activity what, bool hasSucceeded, const QString& sentence);
  void stopWanted();

 private:
  void setActivity(Activity activity);
  Notices& m_notices;
  Activity m_activity = Activity::Idle;
  Worker m_worker;
};

}  // namespace cleave::views
