#include "base/checked.h"
#include "base/quantities.h"
#include "solve/cost/cost_model.h"

#include <array>
#include <cmath>

namespace cleave::solve {

StepCost& StepCost::operator+=(const StepCost& other) {
  flops += other.flops;
  computeFs += other.computeFs;
  trafficFs += other.trafficFs;
  for (const auto field : {&StepCost::trafficBytes, &StepCost::summedGradients, &StepCost::parameters,
                           &StepCost::gradients, &StepCost::optimizer, &StepCost::activations, &StepCost::kvCache}) {
    this->*field = saturatingAdd(this->*field, other.*field);
  }
  return *this;
}

std::int64_t StepCost::bytes() const {
  std::int64_t sum = 0;
  for (const std::int64_t part : {parameters, gradients, optimizer, activations, kvCache})
    sum = saturatingAdd(sum, part);
  return sum;
}

std::int64_t PlanCost::additiveBytes() const { return saturatingAdd(sum.bytes(), fixedBytes); }
std::int64_t PlanCost::bytes() const { return saturatingAdd(additiveBytes(), transientPeak); }

std::string timeText(Femtoseconds exact) {
  struct Unit {
    double femtoseconds;
    const char* name;
    double most;  ///< from this number on, the next unit is used
  };
  static constexpr double kSecond = 1e15, kHour = 3600 * kSecond, kDay = 24 * kHour, kYear = 365.25 * kDay;
  static constexpr std::array kUnits{Unit{1e6, "ns", 999.5},      Unit{1e9, "µs", 999.5},  Unit{1e12, "ms", 999.5},
                                     Unit{kSecond, "s", 9'999.5}, Unit{kHour, "h", 99.95}, Unit{kDay, "days", 999.5},
                                     Unit{kYear, "years", 0}};
  const double time = std::abs(static_cast<double>(exact));
  const char* sign = exact < 0 ? "-" : "";
  if (time == 0) return "0 s";
  // The three digits shown decide the unit, so 999.6 µs is 1.00 ms.
  std::size_t at = 0;
  while (at + 1 < kUnits.size() && time >= kUnits[at].most * kUnits[at].femtoseconds) ++at;
  const double shown = time / kUnits[at].femtoseconds;
  const int decimals = shown >= 99.95 || shown == std::floor(shown) ? 0 : shown >= 9.995 ? 1 : 2;
  const std::string digits = fmt::format("{:.{}f}", shown, decimals);
  if (digits == "0.00") return fmt::format("{}{} fs", sign, static_cast<std::int64_t>(time));
  return fmt::format("{}{} {}", sign, digits, kUnits[at].name);
}

std::string longerText(Femtoseconds change) {
  if (change == 0) return "as long";
  return fmt::format("{} {}", timeText(change < 0 ? -change : change), change < 0 ? "less" : "longer");
}

std::string needsText(std::int64_t bytes) {
  if (bytes == 0) return "needs as much memory";
  return fmt::format("needs {} {} per rank", bytesText(std::abs(bytes)), bytes < 0 ? "less" : "more");
}

}  // namespace cleave::solve
