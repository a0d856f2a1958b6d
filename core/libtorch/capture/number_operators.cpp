#include "libtorch/capture/number_operators.h"

#include "base/checked.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cleave::torch_capture {
namespace {

using Numbers = std::span<const Number>;
using Apply = std::optional<Number> (*)(Numbers);

double realOf(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}
bool isTrue(const Number& number) {
  return std::visit([](auto value) { return value != 0; }, number);
}
/// Python treats a bool as an integer.
std::optional<std::int64_t> wholeOf(const Number& number) {
  if (const auto* flag = std::get_if<bool>(&number)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return *integer;
  return std::nullopt;
}

template <class T>
std::optional<Number> made(std::optional<T> value) {
  return value ? std::optional<Number>(*value) : std::nullopt;
}

/// Rounded towards zero; nullopt if 64 bits do not suffice.
std::optional<Number> truncated(double real) {
  constexpr double kBeyond = 9.2e18;
  if (!(std::abs(real) < kBeyond)) return std::nullopt;
  return Number(static_cast<std::int64_t>(real));
}

template <auto Whole, auto Real>
std::optional<Number> arithmetic(Numbers n) {
  const auto a = wholeOf(n[0]), b = wholeOf(n[1]);
  if (a && b) return made(Whole(*a, *b));
  return Number(Real(realOf(n[0]), realOf(n[1])));
}

std::optional<std::int64_t> wholeQuotient(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
std::optional<std::int64_t> wholeRemainder(std::int64_t a, std::int64_t b) {
  const auto quotient = wholeQuotient(a, b);
  return quotient ? std::optional(a - *quotient * b) : std::nullopt;
}
std::optional<std::int64_t> wholePower(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::optional<std::int64_t> result = 1;
  for (; result && exponent > 0; --exponent) result = checkedMul(*result, base);
  return result;
}
std::optional<std::int64_t> wholeDifference(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}
double realSum(double a, double b) { return a + b; }
double realDifference(double a, double b) { return a - b; }
double realProduct(double a, double b) { return a * b; }
double realQuotient(double a, double b) { return std::floor(a / b); }
double realRemainder(double a, double b) { return a - b * std::floor(a / b); }
double realPower(double a, double b) { return std::pow(a, b); }

std::optional<Number> power(Numbers n) {
  const auto exponent = wholeOf(n[1]);
  if (exponent && *exponent < 0) return Number(std::pow(realOf(n[0]), realOf(n[1])));
  return arithmetic<wholePower, realPower>(n);
}
std::optional<Number> trueQuotient(Numbers n) {
  return realOf(n[1]) == 0 ? std::nullopt : std::optional<Number>(realOf(n[0]) / realOf(n[1]));
}

/// Returns -1, 0 or 1.
int compared(Numbers n) {
  const auto a = wholeOf(n[0]), b = wholeOf(n[1]);
  if (a && b) return *a < *b ? -1 : *a > *b;
  return realOf(n[0]) < realOf(n[1]) ? -1 : realOf(n[0]) > realOf(n[1]);
}
std::optional<Number> isEqual(Numbers n) { return Number(compared(n) == 0); }
std::optional<Number> isUnequal(Numbers n) { return Number(compared(n) != 0); }
std::optional<Number> isLess(Numbers n) { return Number(compared(n) < 0); }
std::optional<Number> isAtMost(Numbers n) { return Number(compared(n) <= 0); }
std::optional<Number> isGreater(Numbers n) { return Number(compared(n) > 0); }
std::optional<Number> isAtLeast(Numbers n) { return Number(compared(n) >= 0); }
std::optional<Number> least(Numbers n) { return compared(n) <= 0 ? n[0] : n[1]; }
std::optional<Number> greatest(Numbers n) { return compared(n) >= 0 ? n[0] : n[1]; }

template <class Bits>
std::optional<Number> bitwise(Numbers n, Bits&& bits) {
  if (std::holds_alternative<bool>(n[0]) && std::holds_alternative<bool>(n[1]))
    return Number(bits(std::get<bool>(n[0]), std::get<bool>(n[1])) != 0);
  const auto a = wholeOf(n[0]), b = wholeOf(n[1]);
  return a && b ? std::optional<Number>(static_cast<std::int64_t>(bits(*a, *b))) : std::nullopt;
}
std::optional<Number> bitwiseAnd(Numbers n) {
  return bitwise(n, [](auto a, auto b) { return a & b; });
}
std::optional<Number> bitwiseOr(Numbers n) {
  return bitwise(n, [](auto a, auto b) { return a | b; });
}
std::optional<Number> shiftedLeft(Numbers n) {
  const auto a = wholeOf(n[0]), by = wholeOf(n[1]);
  if (!a || !by || *by < 0 || *by > 62) return std::nullopt;
  return made(checkedMul(*a, std::int64_t{1} << *by));
}
std::optional<Number> shiftedRight(Numbers n) {
  const auto a = wholeOf(n[0]), by = wholeOf(n[1]);
  if (!a || !by || *by < 0) return std::nullopt;
  return Number(*a >> std::min<std::int64_t>(*by, 63));
}

std::optional<Number> itself(Numbers n) { return n[0]; }
std::optional<Number> negated(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return made(wholeDifference(0, *whole));
  return Number(-realOf(n[0]));
}
std::optional<Number> inverted(Numbers n) { return Number(!isTrue(n[0])); }
std::optional<Number> asWhole(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return Number(*whole);
  return truncated(realOf(n[0]));
}
std::optional<Number> floorOf(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return Number(*whole);
  return truncated(std::floor(realOf(n[0])));
}
std::optional<Number> ceilOf(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return Number(*whole);
  return truncated(std::ceil(realOf(n[0])));
}
std::optional<Number> rounded(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return Number(*whole);
  return truncated(std::nearbyint(realOf(n[0])));
}
std::optional<Number> asReal(Numbers n) { return Number(realOf(n[0])); }
std::optional<Number> magnitude(Numbers n) {
  if (const auto whole = wholeOf(n[0])) return *whole < 0 ? made(wholeDifference(0, *whole)) : Number(*whole);
  return Number(std::abs(realOf(n[0])));
}
std::optional<Number> squareRoot(Numbers n) {
  return realOf(n[0]) < 0 ? std::nullopt : std::optional<Number>(std::sqrt(realOf(n[0])));
}
std::optional<Number> chosen(Numbers n) { return isTrue(n[0]) ? n[1] : n[2]; }

struct NumberRow {
  std::string_view name;
  std::size_t operands;
  Apply apply;
};

constexpr std::array<NumberRow, 34> kNumberRows{{{"add", 2, arithmetic<checkedAdd, realSum>},
                                                 {"sub", 2, arithmetic<wholeDifference, realDifference>},
                                                 {"mul", 2, arithmetic<checkedMul, realProduct>},
                                                 {"floordiv", 2, arithmetic<wholeQuotient, realQuotient>},
                                                 {"mod", 2, arithmetic<wholeRemainder, realRemainder>},
                                                 {"pow", 2, power},
                                                 {"truediv", 2, trueQuotient},
                                                 {"eq", 2, isEqual},
                                                 {"ne", 2, isUnequal},
                                                 {"lt", 2, isLess},
                                                 {"le", 2, isAtMost},
                                                 {"gt", 2, isGreater},
                                                 {"ge", 2, isAtLeast},
                                                 {"and_", 2, bitwiseAnd},
                                                 {"or_", 2, bitwiseOr},
                                                 {"lshift", 2, shiftedLeft},
                                                 {"rshift", 2, shiftedRight},
                                                 {"neg", 1, negated},
                                                 {"pos", 1, itself},
                                                 {"abs", 1, magnitude},
                                                 {"trunc", 1, asWhole},
                                                 {"floor", 1, floorOf},
                                                 {"ceil", 1, ceilOf},
                                                 {"round", 1, rounded},
                                                 {"sqrt", 1, squareRoot},
                                                 {"sym_not", 1, inverted},
                                                 {"sym_int", 1, asWhole},
                                                 {"sym_float", 1, asReal},
                                                 {"sym_ite", 3, chosen},
                                                 {"sym_max", 2, greatest},
                                                 {"sym_min", 2, least},
                                                 {"sym_sqrt", 1, squareRoot},
                                                 {"_sym_sqrt", 1, squareRoot},
                                                 {"index", 1, asWhole}}};

const NumberRow* numberRowOf(std::string_view target) {
  const std::size_t dot = target.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string_view module = target.substr(0, dot), name = target.substr(dot + 1);
  const bool isPythons = module == "_operator" || module == "operator" || module == "math" || module == "builtins";
  const bool isTorchs = module.starts_with("torch") && !module.starts_with("torch.ops") &&
                        (name.starts_with("sym_") || name.starts_with("_sym_"));
  if (!isPythons && !isTorchs) return nullptr;
  const auto* row =
      std::find_if(kNumberRows.begin(), kNumberRows.end(), [&](const NumberRow& one) { return one.name == name; });
  return row == kNumberRows.end() ? nullptr : row;
}

}  // namespace

bool isNumberOperator(std::string_view target) { return numberRowOf(target) != nullptr; }

std::optional<Number> applyNumberOperator(std::string_view target, Numbers operands) {
  const NumberRow* row = numberRowOf(target);
  return row && row->operands == operands.size() ? row->apply(operands) : std::nullopt;
}

}  // namespace cleave::torch_capture
