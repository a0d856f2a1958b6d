#include "libtorch/rank/pulse.h"

#include <condition_variable>
#include <exception>

namespace cleave::torch_rank {
namespace {

void beat(const std::stop_token& stop, const Pulse::Sink& sink, const CallTime& calls) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, stop, protocol::kHeartbeatPeriod, [] { return false; }) && !stop.stop_requested()) {
    try {
      sink(protocol::Heartbeat{calls.soFar().count()});
    } catch (const std::exception&) {
      // Of want of memory: the thread that the rank works on meets the same and says so.
    }
  }
}

}  // namespace

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
    : m_thread([&](const std::stop_token& stop) { beat(stop, sink, calls); }) {}

}  // namespace cleave::torch_rank
