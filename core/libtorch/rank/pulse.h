#pragma once
/// A rank's signs of life, and how long it has waited for others in collective calls, told by a thread that waits for
/// nothing but time. No LibTorch in this header.
#include "libtorch/rank/periodic.h"
#include "protocol/events.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

namespace cleave::torch_rank {

/// How long a rank has been in collective calls. Any thread.
class CallTime {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void begin();
  void end();
  /// Until now, a call that goes on included.
  std::chrono::microseconds soFar() const;

 private:
  mutable std::mutex m_mutex;
  std::chrono::steady_clock::duration m_ended{};
  std::optional<Time> m_since;  ///< of a call that goes on
};

/// Sends a heartbeat every protocol::kHeartbeatPeriod until destroyed. Both arguments must outlive it.
///
/// A rank whose cores are taken is late everywhere, in its collectives too, which looks there as if it waited. So what
/// its threads waited for a processor since the last heartbeat (Linux, /proc/PID/task/TID/schedstat) does not count.
class Pulse {
 public:
  using Sink = std::function<void(const protocol::Message&)>;
  Pulse(const Sink& sink, const CallTime& calls);

 private:
  std::chrono::microseconds waitedSoFar();

  const CallTime& m_calls;
  std::chrono::microseconds m_inCalls{}, m_starved{};  ///< at the last heartbeat
  std::chrono::microseconds m_waited{};
  Periodic m_beats;  ///< last: its thread reads the others
};

}  // namespace cleave::torch_rank
