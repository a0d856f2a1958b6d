#pragma once
/// A rank's heartbeats. Each contains the time that the rank has waited for other ranks in collective calls. Its thread
/// waits only for time. This header does not use LibTorch.
#include "libtorch/rank/collectives/periodic.h"
#include "protocol/events.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

namespace cleave::torch_rank {

/// The time that a rank has spent in collective calls. May be used from any thread.
class CallTime {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void begin();
  void end();
  /// The total until now, including a call that has not ended.
  std::chrono::microseconds soFar() const;

 private:
  mutable std::mutex m_mutex;
  std::chrono::steady_clock::duration m_ended{};
  std::optional<Time> m_since;  ///< start of a call that has not ended
};

/// Sends a heartbeat every protocol::kHeartbeatPeriod until destroyed. Both arguments must outlive it.
///
/// A rank without enough CPU time is slow everywhere, also in its collectives, and would seem to wait for other ranks.
/// So the time that its threads waited for a processor since the last heartbeat is subtracted (Linux,
/// /proc/PID/task/TID/schedstat).
class HeartbeatSender {
 public:
  using Sink = std::function<void(const protocol::Message&)>;
  HeartbeatSender(const Sink& sink, const CallTime& calls);

 private:
  std::chrono::microseconds waitedSoFar();

  const CallTime& m_calls;
  std::chrono::microseconds m_inCalls{}, m_starved{};  ///< at the last heartbeat
  std::chrono::microseconds m_waited{};
  Periodic m_beats;  ///< last, because its thread reads the other members
};

}  // namespace cleave::torch_rank
