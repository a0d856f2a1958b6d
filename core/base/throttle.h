#pragma once
/// Limits an action to once per period. The caller passes the time, so that tests need no clock.
///
///     Throttle reports(50ms);
///     if (reports.isDue(std::chrono::steady_clock::now())) report();
#include <chrono>
#include <optional>

namespace cleave {

class Throttle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `last`: time of the last action; nullopt: it never happened, so it is due at once.
  explicit Throttle(std::chrono::milliseconds period, std::optional<Time> last = std::nullopt)
      : m_period(period), m_last(last) {}
  /// True if a period has passed since it last returned true.
  bool isDue(Time now) {
    if (m_last && now - *m_last < m_period) return false;
    m_last = now;
    return true;
  }

 private:
  std::chrono::milliseconds m_period;
  std::optional<Time> m_last;
};

}  // namespace cleave
