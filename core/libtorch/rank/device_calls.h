#pragma once
/// The collective calls of one rank in its device's queue, of all its groups in one order. They are reported as they
/// complete, and a thread watches them: while the host waits for the device (it reads a value, it copies), nobody else
/// would notice that a peer is gone. LibTorch inside.
///
/// One thread calls all functions; `failure` may be called by any.
#include "base/result.h"
#include "libtorch/rank/device_queue.h"
#include "libtorch/rank/periodic.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::torch_rank {

class DeviceCalls {
 public:
  struct Call {
    std::string_view kind;   ///< "all_reduce", "barrier", ...
    std::int64_t bytes = 0;  ///< 0: not worth a mention
    std::unique_ptr<DeviceMark> before, after;
    bool isBegun = false;  ///< `onBegin` was told
    std::uint64_t number = 0;
  };
  /// How one group of ranks is asked for its health (throws when communication has failed; may be empty) and given up.
  struct Group {
    std::function<void()> checkHealth, breakOff;
  };
  struct Listener {
    std::function<void()> onBegin;           ///< the device has come to a call
    std::function<void(const Call&)> onEnd;  ///< it has completed
  };

  /// `limit`: a call that the device has begun and not completed after it fails.
  DeviceCalls(std::chrono::milliseconds limit, Listener listener)
      : m_usualLimit(limit), m_limit(limit), m_listener(std::move(listener)) {}

  /// From the first group on that has a function the calls are watched.
  void add(Group group);
  void push(std::string_view kind, std::int64_t bytes, std::unique_ptr<DeviceMark> before,
            std::unique_ptr<DeviceMark> after);
  /// Tells the listener what has begun and completed since the last time.
  void report();
  /// Returns when the device has reached `end`. RankFailed, and all groups are broken off, when that takes longer than
  /// `limit` or communication has failed.
  Result<void> waitFor(DeviceMark& end, std::chrono::milliseconds limit);
  /// Why all groups were broken off; nullopt: they were not. Values that were read from the device since then may be
  /// wrong. Any thread.
  std::optional<Error> failure() const;
  /// Ends the watch. Groups end their connections afterwards.
  void stopWatching() { m_watch.reset(); }

 private:
  void watch();
  bool isLate(std::chrono::milliseconds limit);
  /// The first call that has not completed, as seen by the watch; null: none. Under the lock.
  const Call* firstOpen() const;
  std::string openText() const;
  void checkHealth();
  void breakOff(Error why);

  const std::chrono::milliseconds m_usualLimit;
  std::atomic<std::chrono::milliseconds> m_limit;  ///< of the watch
  const Listener m_listener;
  mutable std::mutex m_mutex;  ///< of what follows; marks may be asked by both threads
  std::deque<Call> m_calls;
  std::vector<Group> m_groups;
  std::optional<Error> m_failure;
  std::uint64_t m_pushed = 0;
  // Of the watch alone.
  std::uint64_t m_watched = 0;  ///< number of the call that it waits for
  std::chrono::steady_clock::time_point m_since{};
  std::optional<Periodic> m_watch;  ///< last: its thread reads the others
};

}  // namespace cleave::torch_rank
