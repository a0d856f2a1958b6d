#pragma once
/// One worker thread and its small queue of tagged requests: how the window asks for anything that may take time.
///
/// A request runs on the worker and answers with a completion, which runs on the thread of the Worker object (the GUI
/// thread). A newer request replaces an older one with the same tag: the older is taken out of the queue, or asked to
/// stop and its completion dropped (its generation is stale). So scrubbing posts as fast as it likes and only the
/// newest counts. `cancel` stops a request without dropping its completion: the owner sees the Cancelled error and
/// tidies up.
///
///     worker.post("seek", {}, [cursor, step](const Progress&) {
///       cursor->seek(step);
///       return [=] { show(step); };
///     });
///
/// Shutdown: ask to stop, close the queue, join. No completion runs afterwards. Work that does not look at its stop
/// token is left behind after a while: it owns what it needs, and what it answers is dropped.
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
  /// Runs a completion on the thread of the Worker, from any thread, as long as there is a Worker.
  using Courier = std::function<void(Completion)>;
  using Work = std::function<Completion(const Progress&)>;

  explicit Worker(QObject* parent = nullptr);
  ~Worker() override;

  /// `title` is what the status bar says while it runs; empty: not worth a word.
  void post(const QString& tag, const QString& title, Work work);
  void cancel(const QString& tag);
  void cancelAll();
  /// True from `post` until the completion has run (or was dropped).
  bool isBusy() const;
  bool isBusy(const QString& tag) const;
  Courier courier() const;
  /// Waits on this thread until nothing is queued or runs; false: something still does.
  bool waitUntilIdle(Clock::time_point until);
  void close();  ///< asks to stop, takes nothing more
  /// After `close`: waits for the thread; false when it was left behind.
  bool join(Clock::time_point until);
  void shutdown();  ///< both, with some patience
  /// A thread of this program was left behind: it must end without taking its objects apart (std::_Exit).
  static bool hasLeftBehind();

 signals:
  void started(const QString& tag, const QString& title);
  /// At most 20 times a second, and at the beginning of each stage. `total` 0: unknown.
  void progressed(const QString& tag, const QString& stage, qint64 done, qint64 total);
  /// After the completion of a request that was not replaced.
  void finished(const QString& tag);
  /// From the worker's thread: there is something for `takeAnswer`.
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
  /// One answer for each event: where a completion opens a dialog, the next ones still arrive.
  void takeAnswer();
  void deliver(const QString& tag, std::uint64_t generation, const Completion& completion);

  std::shared_ptr<State> m_state;  ///< shared with the thread, which may be left behind
  std::thread m_thread;
};

}  // namespace cleave::views
