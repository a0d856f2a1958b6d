#pragma once
/// One worker thread with a small queue of tagged requests. The window uses it for all work that may take time.
///
/// A request runs on the worker and returns a completion, which runs on the Worker object's thread (the GUI thread). A
/// newer request replaces an older one with the same tag: the older one leaves the queue, or must stop and its
/// completion is dropped as stale. So scrubbing may post at any rate and only the newest request counts.
/// `cancel` stops a request but keeps its completion: the owner receives the Cancelled error and can tidy up.
///
///     worker.post("seek", {}, [cursor, step](const Progress&) {
///       cursor->seek(step);
///       return [=] { show(step); };
///     });
///
/// Shutdown: ask to stop, close the queue, join. No completion runs afterwards. Work that ignores its stop token is
/// abandoned after a time limit: it owns what it needs, and its completion is dropped.
#include <QObject>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/progress.h"

namespace cleave::views {

class Worker : public QObject {
  Q_OBJECT
 public:
  using Completion = std::function<void()>;
  using Clock = std::chrono::steady_clock;
  /// Runs a completion on the Worker's thread. Callable from any thread, also after the Worker is gone.
  using CompletionPoster = std::function<void(Completion)>;
  using Work = std::function<Completion(const Progress&)>;

  explicit Worker(QObject* parent = nullptr);
  ~Worker() override;

  /// `title`: the status bar's text while it runs. Empty: no text.
  void post(const QString& tag, const QString& title, Work work);
  void cancel(const QString& tag);
  void cancelAll();
  /// True from `post` until the completion has run or was dropped.
  bool isBusy() const;
  bool isBusy(const QString& tag) const;
  CompletionPoster completionPoster() const;
  /// Blocks this thread until nothing is queued or running. False: work was still running at the limit.
  bool waitUntilIdle(Clock::time_point until);
  void close();  ///< asks to stop and rejects new requests
  /// After `close`: waits for the thread. False if the thread was abandoned.
  bool join(Clock::time_point until);
  void shutdown();  ///< `close` and `join` with a time limit
  /// A thread of this program was abandoned. The program must end without destroying its objects (std::_Exit).
  static bool hasAbandonedThread();

 signals:
  void started(const QString& tag, const QString& title);
  /// Emitted at most 20 times a second, and at the beginning of each stage. `total` 0: unknown.
  void progressed(const QString& tag, const QString& stage, qint64 done, qint64 total);
  /// Emitted after the completion of a request that was not replaced.
  void finished(const QString& tag);
  /// Emitted on the worker's thread: `runNextAnswer` has a completion to run.
  void answered(QPrivateSignal);

 private:
  struct Request {
    QString tag, title;
    std::uint64_t generation = 0;
    Work work;
    std::stop_source stop;
  };
  struct State;
  static void loop(const std::shared_ptr<State>& state);
  static void execute(const std::shared_ptr<State>& state, Request& request);
  /// Runs one completion per event, so that the next ones still arrive while a completion shows a dialog.
  void runNextAnswer();
  void deliver(const QString& tag, std::uint64_t generation, const Completion& completion);

  std::shared_ptr<State> m_state;  ///< shared with the thread, which may be abandoned
  std::thread m_thread;
};

}  // namespace cleave::views
