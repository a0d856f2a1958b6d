#include "worker.h"

#include <QMetaObject>
#include <chrono>

#include "text.h"

namespace cleave::views {

namespace {
constexpr auto kReportEvery = std::chrono::milliseconds(50);
}

Worker::Worker(QObject* parent) : QObject(parent), m_thread([this] { loop(); }) {}

Worker::~Worker() {
  shutdown();
}

void Worker::post(const QString& tag, const QString& title, Work work) {
  const std::lock_guard lock(m_mutex);
  if (m_closed) return;
  std::erase_if(m_queue, [&](const Request& queued) { return queued.tag == tag; });
  if (m_runningTag == tag) m_runningStop.request_stop();
  const std::uint64_t generation = ++m_generation;
  m_newest[tag] = generation;
  m_queue.push_back({tag, title, generation, std::move(work), std::stop_source()});
  m_wake.notify_one();
}

void Worker::cancel(const QString& tag) {
  const std::lock_guard lock(m_mutex);
  for (Request& queued : m_queue)
    if (queued.tag == tag) queued.stop.request_stop();
  if (m_runningTag == tag) m_runningStop.request_stop();
}

void Worker::cancelAll() {
  const std::lock_guard lock(m_mutex);
  for (Request& queued : m_queue) queued.stop.request_stop();
  if (!m_runningTag.isEmpty()) m_runningStop.request_stop();
}

bool Worker::isBusy() const {
  const std::lock_guard lock(m_mutex);
  return !m_newest.empty();
}

bool Worker::isBusy(const QString& tag) const {
  const std::lock_guard lock(m_mutex);
  return m_newest.contains(tag);
}

void Worker::shutdown() {
  {
    const std::lock_guard lock(m_mutex);
    m_closed = true;
    m_queue.clear();
    m_newest.clear();
    m_runningStop.request_stop();
    m_wake.notify_one();
  }
  if (m_thread.joinable()) m_thread.join();
}

void Worker::loop() {
  for (;;) {
    Request request;
    {
      std::unique_lock lock(m_mutex);
      m_wake.wait(lock, [this] { return m_closed || !m_queue.empty(); });
      if (m_closed) return;
      request = std::move(m_queue.front());
      m_queue.pop_front();
      m_runningTag = request.tag;
      m_runningStop = request.stop;
    }
    execute(request);
    const std::lock_guard lock(m_mutex);
    m_runningTag.clear();
  }
}

void Worker::execute(Request& request) {
  emit started(request.tag, request.title);
  auto lastReport = std::chrono::steady_clock::now() - kReportEvery;
  const Progress progress(request.stop.get_token(), [&](const ProgressUpdate& update) {
    const auto now = std::chrono::steady_clock::now();
    if (now - lastReport < kReportEvery) return;
    lastReport = now;
    emit progressed(request.tag, toQ(update.stage), update.done, update.total);
  });
  Completion completion = request.work(progress);
  QMetaObject::invokeMethod(
      this,
      [this, tag = request.tag, generation = request.generation, completion = std::move(completion)] {
        deliver(tag, generation, completion);
      },
      Qt::QueuedConnection);
}

void Worker::deliver(const QString& tag, std::uint64_t generation, const Completion& completion) {
  {
    const std::lock_guard lock(m_mutex);
    const auto newest = m_newest.find(tag);
    if (newest == m_newest.end() || newest->second != generation) return;
    m_newest.erase(newest);
  }
  if (completion) completion();
  emit finished(tag);
}

}  // namespace cleave::views
