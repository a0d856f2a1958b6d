#pragma once
/// Streams and events: queues of work. Each runs its jobs in order on its own thread. Any thread may call.
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace simulated_gpu {

inline constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;
using Clock = std::chrono::steady_clock;

/// A point in a stream, reached when all earlier work is done.
class Event {
 public:
  void reach();
  bool isReached() const;
  void wait() const;
  Clock::time_point time() const;  ///< time at which it was reached

 private:
  mutable std::mutex m_mutex;
  mutable std::condition_variable m_wake;
  bool m_isReached = false;
  Clock::time_point m_time{};
};
using EventPtr = std::shared_ptr<Event>;

class Stream {
 public:
  explicit Stream(c10::StreamId id);
  c10::StreamId id() const { return m_id; }
  /// Throws if the device has failed. `isKernel`: delayed, and counted for the fault `fail`.
  void push(std::function<void()> job, bool isKernel = false);
  EventPtr record();
  void waitFor(const EventPtr& event);  ///< later work of this stream waits for the event; the host continues
  void synchronize();                   ///< the host waits; throws if the device has failed

 private:
  struct Job {
    std::function<void()> run;
    bool isKernel = false;
  };
  void work();
  const c10::StreamId m_id;
  std::mutex m_mutex;
  std::condition_variable m_wake;
  std::deque<Job> m_jobs;
};

/// Throws the error of a failed kernel. A failed device does not recover.
void throwIfFailed();
void failDevice(const std::string& why);

/// The stream for this thread's work: the device's default stream unless it was changed.
Stream& currentStream();
/// Returns the previous stream.
c10::StreamId exchangeCurrentStream(c10::StreamId id);
Stream& streamOf(c10::StreamId id);
Stream& newStream();

}  // namespace simulated_gpu
