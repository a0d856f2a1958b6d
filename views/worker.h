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
/// Shutdown: ask to stop, close the queue, join. No completion runs afterwards.
#include <QObject>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/progress.h"

namespace cleave::views {

class Worker : public QObject {
  Q_OBJECT
 public:
  using Completion = std::function<void()>;
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
  void shutdown();

 signals:
  void started(const QString& tag, const QString& title);
  /// At most 20 times a second. `total` 0: unknown.
  void progressed(const QString& tag, const QString& stage, qint64 done, qint64 total);
  /// After the completion of a request that was not replaced.
  void finished(const QString& tag);

 private:
  struct Request {
    QString tag, title;
    std::uint64_t generation = 0;
    Work work;
    std::stop_source stop;
  };
  void loop();
  void execute(Request& request);
  void deliver(const QString& tag, std::uint64_t generation, const Completion& completion);

  mutable std::mutex m_mutex;
  std::condition_variable m_wake;
  std::deque<Request> m_queue;
  QString m_runningTag;
  std::stop_source m_runningStop;
  bool m_closed = false;
  std::uint64_t m_generation = 0;
  std::map<QString, std::uint64_t> m_newest;  ///< by tag: generation whose completion is still awaited
  std::thread m_thread;
};

}  // namespace cleave::views
