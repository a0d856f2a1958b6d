#include "tests/support/simulated_gpu/stream.h"

#include "tests/support/simulated_gpu/settings.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace simulated_gpu {
namespace {

struct Failure {
  std::mutex mutex;
  std::string why;
};
Failure& failure() {
  static auto* one = new Failure;
  return *one;
}

struct Streams {
  std::mutex mutex;
  std::vector<std::unique_ptr<Stream>> all;
};
/// Never destroyed, because their threads run until the process exits.
Streams& streams() {
  static auto* one = new Streams{{}, {}};
  return *one;
}

thread_local c10::StreamId current = 0;
std::atomic<std::int64_t> kernels{0};

}  // namespace

void Event::reach() {
  const std::lock_guard lock(m_mutex);
  m_isReached = true;
  m_time = Clock::now();
  m_wake.notify_all();
}
bool Event::isReached() const {
  const std::lock_guard lock(m_mutex);
  return m_isReached;
}
void Event::wait() const {
  std::unique_lock lock(m_mutex);
  m_wake.wait(lock, [this] { return m_isReached; });
}
Clock::time_point Event::time() const {
  const std::lock_guard lock(m_mutex);
  TORCH_CHECK(m_isReached, "Both events must be completed before calculating elapsed time.");
  return m_time;
}

void failDevice(const std::string& why) {
  const std::lock_guard lock(failure().mutex);
  if (failure().why.empty()) failure().why = why;
}

void throwIfFailed() {
  const std::lock_guard lock(failure().mutex);
  constexpr int kIllegalAddress = 700;
  if (!failure().why.empty())
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kIllegalAddress, "CUDA error: " + failure().why);
}

Stream::Stream(c10::StreamId id) : m_id(id) {
  std::thread([this] { work(); }).detach();
}

void Stream::push(std::function<void()> job, bool isKernel) {
  throwIfFailed();
  const std::lock_guard lock(m_mutex);
  m_jobs.push_back({std::move(job), isKernel});
  m_wake.notify_all();
}

EventPtr Stream::record() {
  auto event = std::make_shared<Event>();
  push([event] { event->reach(); });
  return event;
}

void Stream::waitFor(const EventPtr& event) {
  push([event] { event->wait(); });
}

void Stream::synchronize() {
  record()->wait();
  throwIfFailed();
}

void Stream::work() {
  // The host has done autograd's part already.
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::NoGradGuard noGradients;
  while (true) {
    Job job;
    {
      std::unique_lock lock(m_mutex);
      m_wake.wait(lock, [this] { return !m_jobs.empty(); });
      job = std::move(m_jobs.front());
      m_jobs.pop_front();
    }
    if (job.isKernel && settings().delayUs > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(settings().delayUs));
    try {
      if (job.isKernel && settings().hits(settings().fail, ++kernels))
        failDevice("an illegal memory access was encountered");
      else
        job.run();
    } catch (const c10::Error& error) {
      failDevice(error.what_without_backtrace());
    } catch (const std::exception& error) {
      failDevice(error.what());
    }
  }
}

Stream& newStream() {
  const std::lock_guard lock(streams().mutex);
  if (streams().all.empty()) streams().all.push_back(std::make_unique<Stream>(0));
  return *streams().all.emplace_back(std::make_unique<Stream>(static_cast<c10::StreamId>(streams().all.size())));
}

Stream& streamOf(c10::StreamId id) {
  const std::lock_guard lock(streams().mutex);
  if (streams().all.empty()) streams().all.push_back(std::make_unique<Stream>(0));
  return *streams().all.at(static_cast<std::size_t>(id));
}

Stream& currentStream() { return streamOf(current); }
c10::StreamId exchangeCurrentStream(c10::StreamId id) { return std::exchange(current, id); }

}  // namespace simulated_gpu
