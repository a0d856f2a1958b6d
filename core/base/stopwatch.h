#pragma once
/// Measures elapsed time on a steady clock.
///
///     const Stopwatch loading;
///     ...
///     timings.loadMs = loading.milliseconds();
#include <chrono>

namespace cleave {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - m_start).count();
  }

 private:
  std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
};

}  // namespace cleave
