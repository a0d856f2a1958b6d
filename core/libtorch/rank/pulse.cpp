#include "libtorch/rank/pulse.h"

namespace cleave::torch_rank {

void CallTime::begin() {
  const std::lock_guard lock(m_mutex);
  if (!m_since) m_since = std::chrono::steady_clock::now();
}

void CallTime::end() {
  const std::lock_guard lock(m_mutex);
  if (m_since) m_ended += std::chrono::steady_clock::now() - *m_since;
  m_since.reset();
}

std::chrono::microseconds CallTime::soFar() const {
  const std::lock_guard lock(m_mutex);
  const auto current = m_since ? std::chrono::steady_clock::now() - *m_since : std::chrono::steady_clock::duration{};
  return std::chrono::duration_cast<std::chrono::microseconds>(m_ended + current);
}

Pulse::Pulse(const Sink& sink, const CallTime& calls)
    : m_beats(protocol::kHeartbeatPeriod, protocol::kHeartbeatPeriod,
              [&] { sink(protocol::Heartbeat{calls.soFar().count()}); }) {}

}  // namespace cleave::torch_rank
