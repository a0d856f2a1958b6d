#include "base/checked.h"
#include "solve/cost/cost_model.h"

#include <array>
#include <cmath>

namespace cleave::solve {

StepCost& StepCost::operator+=(const StepCost& other) {
  for (const auto field : {&StepCost::computeFs, &StepCost::trafficFs, &StepCost::trafficBytes, &StepCost::summedGradients,
                           &StepCost::parameters, &StepCost::gradients, &StepCost::optimizer, &StepCost::activations, &StepCost::kvCache}) {
    this->*field = saturatingAdd(this->*field, other.*field);
  }
  return *this;
}

std::int64_t StepCost::femtoseconds() const { return saturatingAdd(computeFs, trafficFs); }

std::int64_t StepCost::bytes() const {
  std::int64_t sum = 0;
  for (const std::int64_t part : {parameters, gradients, optimizer, activations, kvCache}) sum = saturatingAdd(sum, part);
  return sum;
}

std::int64_t PlanCost::additiveBytes() const { return saturatingAdd(sum.bytes(), fixedBytes); }
std::int64_t PlanCost::bytes() const { return saturatingAdd(additiveBytes(), transientPeak); }

std::string timeText(std::int64_t femtoseconds) {
  struct Unit {
    double femtoseconds;
    const char* name;
  };
  static constexpr std::array kUnits{Unit{1e6, "ns"}, Unit{1e9, "µs"}, Unit{1e12, "ms"}, Unit{1e15, "s"}};
  const double time = std::abs(static_cast<double>(femtoseconds));
  const char* sign = femtoseconds < 0 ? "-" : "";
  if (time == 0) return "0 s";
  // 999.6 µs is 1 ms: the unit is chosen for what three digits show.
  std::size_t at = 0;
  while (at + 1 < kUnits.size() && time >= 999.5 * kUnits[at].femtoseconds) ++at;
  const double shown = time / kUnits[at].femtoseconds;
  const int decimals = shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2;
  std::string digits = fmt::format("{:.{}f}", shown, decimals);
  if (decimals > 0) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  if (digits == "0") return fmt::format("{}{} fs", sign, static_cast<std::int64_t>(time));
  return fmt::format("{}{} {}", sign, digits, kUnits[at].name);
}

}  // namespace cleave::solve
