#include "base/schema_forms.h"

namespace cleave::schema {

std::string rangeText(IntegerRange range) {
  constexpr std::int64_t kUnbounded = std::int64_t{1} << 31;
  const bool hasMin = range.min > -kUnbounded, hasMax = range.max < kUnbounded - 1;
  if (hasMin && hasMax) return fmt::format("integer from {} to {}", range.min, range.max);
  if (hasMin) return range.min == 1 ? "positive integer" : fmt::format("integer, at least {}", range.min);
  return hasMax ? fmt::format("integer, at most {}", range.max) : "integer";
}

Result<double> NumberBetween::read(const JsonObject& object, std::string_view key) const {
  CLEAVE_TRY(const double number, object.number(key));
  if (!(number >= min && number <= max)) return object.wrong(key, fmt::format("a number from {} to {}", min, max));
  return number;
}

}  // namespace cleave::schema
