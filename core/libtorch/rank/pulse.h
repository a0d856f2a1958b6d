#pragma once
/// A rank's signs of life, and how long it has waited in collective calls, told by a thread that waits for nothing but
/// time. No LibTorch in this header.
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
class Pulse {
 public:
  using Sink = std::function<void(const protocol::Message&)>;
  Pulse(const Sink& sink, const CallTime& calls);

 private:
  Periodic m_beats;
};

}  // namespace cleave::torch_rank
