#pragma once
/// Benchmarks of Cleave. Each case is a function that measures something and reports numbers. `cleave-bench` prints one
/// JSON line per case. A case is in the file of its room and registers itself:
///
///     BENCH_CASE("solve/seek") {
///       bench.measure("seek_ms", [&] { cursor.seek(...); });
///       bench.report("events", trace->size());
///     }
///
///     cleave-bench              every case
///     cleave-bench solve        the cases whose name contains "solve"
/// cleave-bench view         the window, compared with its limits
/// cleave-bench --smoke      each measurement once, on small inputs if a case has them, to check that all still run
///     cleave-bench --list
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cleave::bench {

class Bench {
 public:
  using Number = std::variant<std::int64_t, double, std::string>;
  explicit Bench(bool isSmoke = false) : m_isSmoke(isSmoke) {}
  /// True with --smoke: use the smaller input, because only success counts, not speed.
  bool isSmoke() const { return m_isSmoke; }

  /// Runs the work `runs` times (at least once), and reports and returns the median in milliseconds.
  double measure(std::string_view name, const std::function<void()>& work, int runs = 5);
  /// The same with the minimum: the cost of the work on an otherwise idle processor.
  double least(std::string_view name, const std::function<void()>& work, int runs);
  /// Reports a number with its limit. The case fails at three times the limit.
  void hold(std::string_view name, double number, double limit);
  /// Reports the median with a limit in milliseconds.
  void hold(std::string_view name, double limitMs, const std::function<void()>& work, int runs);
  void report(std::string_view name, double number) { m_numbers.emplace_back(name, number); }
  void report(std::string_view name, std::int64_t number) { m_numbers.emplace_back(name, number); }
  void report(std::string_view name, std::uint64_t number) { report(name, static_cast<std::int64_t>(number)); }
  void report(std::string_view name, int number) { report(name, static_cast<std::int64_t>(number)); }
  void report(std::string_view name, std::string text) { m_numbers.emplace_back(name, std::move(text)); }
  const std::vector<std::pair<std::string, Number>>& numbers() const { return m_numbers; }
  /// The names of measurements far over their limit.
  const std::vector<std::string>& excesses() const { return m_excesses; }

 private:
  /// Milliseconds of each run, ascending.
  std::vector<double> timesOf(const std::function<void()>& work, int runs) const;
  double reported(std::string_view name, double ms) {
    report(name, ms);
    return ms;
  }
  bool m_isSmoke;
  std::vector<std::pair<std::string, Number>> m_numbers;
  std::vector<std::string> m_excesses;
};

/// The value. An error ends the case with its message.
template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}
inline void need(bool holds, const char* sentence) {
  if (!holds) throw std::runtime_error(sentence);
}

struct Case {
  std::string_view name;
  void (*run)(Bench&);
};
/// Registered cases. Their order depends on the link line, so `cleave-bench` sorts them by name.
std::vector<Case>& cases();

struct Registration {
  Registration(std::string_view name, void (*run)(Bench&)) { cases().push_back({name, run}); }
};

}  // namespace cleave::bench

#define BENCH_CASE_(name, line)                                                              \
  static void benchCase##line(::cleave::bench::Bench& bench);                                \
  static const ::cleave::bench::Registration benchRegistration##line(name, benchCase##line); \
  static void benchCase##line(::cleave::bench::Bench& bench)
#define BENCH_CASE_AT_(name, line) BENCH_CASE_(name, line)
#define BENCH_CASE(name) BENCH_CASE_AT_(name, __LINE__)
