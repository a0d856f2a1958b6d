#pragma once
/// The collective calls of one rank in its device's queue, in one order for all its groups. They are reported as they
/// complete. A thread watches them, because the host may wait for the device (to read or copy a value) when a peer
/// exits. This header uses LibTorch.
///
/// One thread calls all functions, except `failure`, which any thread may call.
#include "base/result.h"
#include "libtorch/rank/collectives/device_queue.h"
#include "libtorch/rank/collectives/periodic.h"

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
    std::int64_t bytes = 0;  ///< 0: not reported
    std::unique_ptr<DeviceMark> before, after;
    bool isBegun = false;  ///< `onBegin` was called
    std::uint64_t number = 0;
  };
  /// Functions of one group of ranks. Both may be empty.
  struct Group {
    std::function<void()> checkHealth;  ///< throws if communication has failed
    std::function<void()> abort;
  };
  struct Listener {
    std::function<void()> onBegin;           ///< the device has reached a call
    std::function<void(const Call&)> onEnd;  ///< the call has completed
  };

  /// A call fails if it has not completed `limit` after the device began it.
  DeviceCalls(std::chrono::milliseconds limit, Listener listener)
      : m_usualLimit(limit), m_limit(limit), m_listener(std::move(listener)) {}

  /// Adds a group. The watch starts with the first group that has a function.
  void add(Group group);
  void push(std::string_view kind, std::int64_t bytes, std::unique_ptr<DeviceMark> before,
            std::unique_ptr<DeviceMark> after);
  /// Reports to the listener the calls that have begun or completed since the last report.
  void report();
  /// Returns when the device has reached `end`. Returns RankFailed and aborts all groups if that takes longer than
  /// `limit` or communication has failed.
  Result<void> waitFor(DeviceMark& end, std::chrono::milliseconds limit);
  /// The reason that all groups were aborted; nullopt if they were not. Values read from the device after an abort may
  /// be wrong. May be called from any thread.
  std::optional<Error> failure() const;
  /// Ends the watch. Call this before the groups close their connections.
  void stopWatching() { m_watch.reset(); }

 private:
  void watch();
  bool isLate(std::chrono::milliseconds limit);
  /// The first call that has not completed, or null. The caller holds the lock.
  const Call* firstOpen() const;
  std::string openText() const;
  void checkHealth();
  void abortGroups(Error why);

  const std::chrono::milliseconds m_usualLimit;
  std::atomic<std::chrono::milliseconds> m_limit;  ///< the watch's current limit
  const Listener m_listener;
  mutable std::mutex m_mutex;  ///< guards the next four members; both threads may query marks
  std::deque<Call> m_calls;
  std::vector<Group> m_groups;
  std::optional<Error> m_failure;
  std::once_flag m_abort;  ///< the first failure aborts; others wait for it
  std::uint64_t m_pushed = 0;
  // Only the watch uses the next two members.
  std::uint64_t m_watched = 0;  ///< number of the call that the watch waits for
  std::chrono::steady_clock::time_point m_since{};
  std::optional<Periodic> m_watch;  ///< last, because its thread reads the other members
};

}  // namespace cleave::torch_rank
