#pragma once
/// The devices of one process: streams that run tasks in order, events in them, and memory.
///
/// All objects live until the process exits, because threads of streams may run until then.
#include <driver_types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace cleave::shims {

using Clock = std::chrono::steady_clock;

class Stream {
 public:
  using Task = std::function<void()>;
  explicit Stream(int device) : m_device(device) {}

  int device() const { return m_device; }
  /// Runs after all earlier tasks; without earlier tasks, at once on the caller's thread. `task` must not wait.
  void run(Task task);
  /// Runs after all earlier tasks, on the stream's thread.
  void queue(Task task);
  bool isIdle() const;
  /// Waits until all tasks are done.
  void synchronize();

 private:
  void work();

  const int m_device;
  mutable std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<Task> m_tasks;  ///< the first one may be running
  bool m_hasThread = false;
};

/// One recording of an event.
class Mark {
 public:
  void reach();
  bool isComplete() const;
  void wait();
  Clock::time_point time() const { return m_time; }  ///< once complete

 private:
  mutable std::mutex m_mutex;
  std::condition_variable m_changed;
  bool m_isReached = false;
  Clock::time_point m_time{};
};

struct Event {
  bool hasTime = true;
  std::shared_ptr<Mark> mark;  ///< null: not recorded yet
};

/// The device that the calling thread uses.
int currentDevice();
void setCurrentDevice(int device);

Stream* makeStream(int device);
/// CUDA's handle is a Stream, or one of the default stream of the current device.
Stream& streamOf(cudaStream_t stream);
void synchronizeDevice(int device);

/// Bytes of a context, of the runtime and its modules.
inline constexpr std::size_t kContextBytes = std::size_t{500} << 20;
std::size_t totalBytes();
/// Free memory of `device`, after its context. Ignores other processes.
std::size_t freeBytes(int device);
/// Null if `device` has less than `bytes` left.
void* allocateDevice(int device, std::size_t bytes);
void* allocatePinned(std::size_t bytes);
bool release(void* memory);
void pin(void* memory, std::size_t bytes);
void unpin(void* memory);

struct Place {
  enum class Kind { Pageable, Pinned, Device } kind = Kind::Pageable;
  int device = 0;
};
Place placeOf(const void* memory);

}  // namespace cleave::shims
