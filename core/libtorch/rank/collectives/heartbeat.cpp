#include "libtorch/rank/collectives/heartbeat.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace cleave::torch_rank {
namespace {

/// The time that the threads of this process, in total, were ready to run but had no processor. 0 if the kernel does
/// not count it.
std::chrono::microseconds starvedSoFar() {
  std::chrono::nanoseconds total{};
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream file(at->path() / "schedstat");
    std::int64_t running = 0, waiting = 0;
    if (file >> running >> waiting) total += std::chrono::nanoseconds(waiting);
  }
  return std::chrono::duration_cast<std::chrono::microseconds>(total);
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

HeartbeatSender::HeartbeatSender(const Sink& sink, const CallTime& calls)
    : m_calls(calls),
      m_starved(starvedSoFar()),
      m_beats(protocol::kHeartbeatPeriod, protocol::kHeartbeatPeriod,
              [this, &sink] { sink(protocol::Heartbeat{waitedSoFar().count()}); }) {}

std::chrono::microseconds HeartbeatSender::waitedSoFar() {
  const auto inCalls = m_calls.soFar(), starved = starvedSoFar();
  const auto since = [](std::chrono::microseconds& before, std::chrono::microseconds now) {
    return std::max(now - std::exchange(before, now), std::chrono::microseconds(0));  // a thread may have ended
  };
  const auto called = since(m_inCalls, inCalls), withoutCore = since(m_starved, starved);
  m_waited += std::max(called - withoutCore, std::chrono::microseconds(0));
  return m_waited;
}

}  // namespace cleave::torch_rank
