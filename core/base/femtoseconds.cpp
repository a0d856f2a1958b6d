#include "base/femtoseconds.h"

#include <algorithm>
#include <cmath>

namespace cleave {

Femtoseconds Femtoseconds::ofSeconds(double seconds) {
  constexpr double kLargest = 1e28;
  const double count = seconds * 1e15;
  return Femtoseconds(static_cast<Wide>(std::round(count < kLargest ? std::max(count, -kLargest) : kLargest)));
}

std::string toText(Femtoseconds time) {
  const bool isNegative = time < 0;
  std::string digits;
  for (Wide rest = time.count(); rest != 0; rest /= 10) {
    const int digit = static_cast<int>(rest % 10);
    digits += static_cast<char>('0' + (isNegative ? -digit : digit));
  }
  if (digits.empty()) digits = "0";
  if (isNegative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace cleave
