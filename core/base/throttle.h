#pragma once
/// Lets something happen at most once in a period. Is told the time, so that a test can make it up.
///
///     Throttle reports(50ms);
///     if (reports.isDue(std::chrono::steady_clock::now())) report();
#include <chrono>
#include <optional>

namespace cleave {

class Throttle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `last`: when it happened last; nullopt: never, so that it is due at once.
  explicit Throttle(std::chrono::milliseconds period, std::optional<Time> last = std::nullopt)
      : m_period(period), m_last(last) {}
  /// True when a period has passed since it was true last.
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
