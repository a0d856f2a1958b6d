#include "views/worker/worker.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace cleave::views {

namespace {
constexpr auto kReportEvery = std::chrono::milliseconds(50);
constexpr auto kPatience = std::chrono::seconds(2);
std::atomic<bool> hasLeftThread = false;
}  // namespace

struct Worker::State {
  std::mutex mutex;
  std::condition_variable wake, ended;
  std::deque<Request> queue;
  QString runningTag;
  std::stop_source runningStop;
  bool isClosed = false, hasEnded = false;
  std::uint64_t generation = 0;
  std::map<QString, std::uint64_t> newest;           ///< by tag: generation of the pending completion
  std::deque<std::function<void(Worker&)>> answers;  ///< completions on their way to the owner's thread
  Worker* owner = nullptr;                           ///< null once closed

  /// The owner cannot be destroyed while the mutex is locked. Completions go through `answers` because ThreadSanitizer
  /// does not see the lock inside Qt's event queue.
  void send(std::function<void(Worker&)> answer) {
    const std::lock_guard lock(mutex);
    if (!owner) return;
    answers.push_back(std::move(answer));
    emit owner->answered(QPrivateSignal());
  }
};

Worker::Worker(QObject* parent) : QObject(parent), m_state(std::make_shared<State>()) {
  m_state->owner = this;
  connect(this, &Worker::answered, this, &Worker::runNextAnswer, Qt::QueuedConnection);
  m_thread = std::thread([state = m_state] { loop(state); });
}

Worker::~Worker() { shutdown(); }

void Worker::shutdown() {
  close();
  join(Clock::now() + kPatience);
}

void Worker::post(const QString& tag, const QString& title, Work work) {
  const std::lock_guard lock(m_state->mutex);
  if (m_state->isClosed) return;
  std::erase_if(m_state->queue, [&](const Request& queued) { return queued.tag == tag; });
  if (m_state->runningTag == tag) m_state->runningStop.request_stop();
  const std::uint64_t generation = ++m_state->generation;
  m_state->newest[tag] = generation;
  m_state->queue.push_back({tag, title, generation, std::move(work), std::stop_source()});
  m_state->wake.notify_one();
}

void Worker::cancel(const QString& tag) {
  const std::lock_guard lock(m_state->mutex);
  for (Request& queued : m_state->queue)
    if (queued.tag == tag) queued.stop.request_stop();
  if (m_state->runningTag == tag) m_state->runningStop.request_stop();
}

void Worker::cancelAll() {
  const std::lock_guard lock(m_state->mutex);
  for (Request& queued : m_state->queue) queued.stop.request_stop();
  if (!m_state->runningTag.isEmpty()) m_state->runningStop.request_stop();
}

bool Worker::isBusy() const {
  const std::lock_guard lock(m_state->mutex);
  return !m_state->newest.empty();
}

bool Worker::isBusy(const QString& tag) const {
  const std::lock_guard lock(m_state->mutex);
  return m_state->newest.contains(tag);
}

Worker::CompletionPoster Worker::completionPoster() const {
  return [state = m_state](Completion completion) {
    state->send([completion = std::move(completion)](Worker&) { completion(); });
  };
}

bool Worker::waitUntilIdle(Clock::time_point until) {
  std::unique_lock lock(m_state->mutex);
  return m_state->ended.wait_until(
      lock, until, [this] { return m_state->isClosed || (m_state->queue.empty() && m_state->runningTag.isEmpty()); });
}

void Worker::close() {
  std::deque<Request> dropped;  // what they own is destroyed outside the lock
  std::deque<std::function<void(Worker&)>> unheard;
  const std::lock_guard lock(m_state->mutex);
  m_state->isClosed = true;
  m_state->owner = nullptr;
  dropped.swap(m_state->queue);
  unheard.swap(m_state->answers);
  m_state->newest.clear();
  m_state->runningStop.request_stop();
  m_state->wake.notify_one();
}

bool Worker::join(Clock::time_point until) {
  if (!m_thread.joinable()) return true;
  std::unique_lock lock(m_state->mutex);
  const bool hasEnded = m_state->ended.wait_until(lock, until, [this] { return m_state->hasEnded; });
  lock.unlock();
  if (hasEnded) return m_thread.join(), true;
  m_thread.detach();
  hasLeftThread = true;
  return false;
}

bool Worker::hasAbandonedThread() { return hasLeftThread; }

void Worker::loop(const std::shared_ptr<State>& state) {
  for (;;) {
    Request request;
    {
      std::unique_lock lock(state->mutex);
      state->runningTag.clear();
      state->ended.notify_all();
      state->wake.wait(lock, [&] { return state->isClosed || !state->queue.empty(); });
      if (state->isClosed) {
        state->hasEnded = true;
        state->ended.notify_all();
        return;
      }
      request = std::move(state->queue.front());
      state->queue.pop_front();
      state->runningTag = request.tag;
      state->runningStop = request.stop;
    }
    execute(state, request);
  }
}

void Worker::execute(const std::shared_ptr<State>& state, Request& request) {
  const QString tag = request.tag;
  state->send([tag, title = request.title](Worker& worker) { emit worker.started(tag, title); });
  auto lastReport = Clock::now() - kReportEvery;
  std::string lastStage;
  const Progress progress(request.stop.get_token(), [&](const ProgressUpdate& update) {
    const auto now = Clock::now();
    if (now - lastReport < kReportEvery && update.stage == lastStage)
      return;  // the first report of a new stage is always sent
    lastReport = now;
    lastStage = update.stage;
    state->send([tag, stage = QString::fromUtf8(update.stage), done = update.done,
                 total = update.total](Worker& worker) { emit worker.progressed(tag, stage, done, total); });
  });
  state->send([tag, generation = request.generation, completion = request.work(progress)](Worker& worker) {
    worker.deliver(tag, generation, completion);
  });
}

void Worker::runNextAnswer() {
  std::function<void(Worker&)> answer;
  {
    const std::lock_guard lock(m_state->mutex);
    if (m_state->answers.empty()) return;
    answer = std::move(m_state->answers.front());
    m_state->answers.pop_front();
  }
  answer(*this);
}

void Worker::deliver(const QString& tag, std::uint64_t generation, const Completion& completion) {
  {
    const std::lock_guard lock(m_state->mutex);
    const auto newest = m_state->newest.find(tag);
    if (newest == m_state->newest.end() || newest->second != generation) return;
    m_state->newest.erase(newest);
  }
  if (completion) completion();
  emit finished(tag);
}

}  // namespace cleave::views
