#include "formats/size_expression.h"

#include "base/characters.h"
#include "base/checked.h"
#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace cleave::formats {
namespace {

constexpr std::size_t kLongestText = 16 << 10;
constexpr int kDeepestExpression = 64;
constexpr std::int64_t kLargestPower = 16;

bool isWordCharacter(char c) { return isAsciiLetterOrDigit(c) || c == '_' || c == '.'; }

/// Rounds to minus infinity, like Python.
std::optional<std::int64_t> floorDivide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > kLargestPower) return std::nullopt;
  std::optional<std::int64_t> result = 1;
  for (; result && exponent > 0; --exponent) result = checkedMul(*result, base);
  return result;
}

}  // namespace

/// Recursive descent over both notations. Operators of sums and products may contain calls.
class SizeExpressionParser {
 public:
  using Kind = SizeExpression::Kind;
  explicit SizeExpressionParser(std::string_view text) : m_rest(text) {}

  std::optional<SizeExpression> parse() {
    if (m_rest.size() > kLongestText || !sum(0)) return std::nullopt;
    skipSpace();
    return m_rest.empty() ? std::optional(std::move(m_made)) : std::nullopt;
  }

 private:
  void skipSpace() {
    while (!m_rest.empty() && m_rest.front() == ' ') m_rest.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skipSpace();
    if (!m_rest.starts_with(word)) return false;
    m_rest.remove_prefix(word.size());
    return true;
  }
  void step(Kind kind, std::int64_t number, std::size_t operands) {
    m_made.m_steps.push_back({kind, number, operands});
  }
  void negate() {
    step(Kind::Number, -1, 0);
    step(Kind::Multiply, 0, 2);
  }

  bool sum(int depth) {
    if (depth > kDeepestExpression || !product(depth)) return false;
    for (;;) {
      const bool isMinus = take("-");
      if (!isMinus && !take("+")) return true;
      if (!product(depth)) return false;
      if (isMinus) negate();
      step(Kind::Add, 0, 2);
    }
  }

  bool product(int depth) {
    if (!factor(depth)) return false;
    for (;;) {
      skipSpace();
      const Kind kind = take("//") ? Kind::FloorDivide : take("%") ? Kind::Modulo : Kind::Multiply;
      const bool isTimes = kind == Kind::Multiply && !m_rest.starts_with("**") && take("*");
      if (kind == Kind::Multiply && !isTimes) return true;
      if (!factor(depth)) return false;
      step(kind, 0, 2);
    }
  }

  bool factor(int depth) {
    if (depth > kDeepestExpression) return false;
    if (take("-")) {
      if (!factor(depth + 1)) return false;
      negate();
      return true;
    }
    if (!atom(depth)) return false;
    if (!take("**")) return true;
    if (!factor(depth + 1)) return false;
    step(Kind::Power, 0, 2);
    return true;
  }

  bool atom(int depth) {
    if (take("(")) return sum(depth + 1) && take(")");
    skipSpace();
    const auto end = std::find_if_not(m_rest.begin(), m_rest.end(), isWordCharacter);
    const std::string_view word = m_rest.substr(0, static_cast<std::size_t>(end - m_rest.begin()));
    if (word.empty()) return false;
    m_rest.remove_prefix(word.size());
    if (word.front() >= '0' && word.front() <= '9') return number(word);
    return take("(") ? call(word.substr(word.rfind('.') + 1), depth) : symbol(word);
  }

  bool number(std::string_view word) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size()) return false;
    step(Kind::Number, value, 0);
    return true;
  }

  bool symbol(std::string_view name) {
    auto& symbols = m_made.m_symbols;
    const auto found = std::find(symbols.begin(), symbols.end(), name);
    step(Kind::Symbol, found - symbols.begin(), 0);
    if (found == symbols.end()) symbols.emplace_back(name);
    return true;
  }

  /// Parses after the opening bracket.
  bool call(std::string_view name, int depth) {
    if (name == "Symbol") return quotedSymbol();
    if (name == "Integer" || name == "TruncToInt" || name == "floor") return sum(depth + 1) && take(")");
    struct Row {
      std::string_view name;
      Kind kind;
      bool takesMany;
    };
    static constexpr std::array<Row, 12> kCalls{{{"Add", Kind::Add, true},
                                                 {"Mul", Kind::Multiply, true},
                                                 {"Max", Kind::Greatest, true},
                                                 {"Min", Kind::Least, true},
                                                 {"Pow", Kind::Power, false},
                                                 {"PowByNatural", Kind::Power, false},
                                                 {"FloorDiv", Kind::FloorDivide, false},
                                                 {"CleanDiv", Kind::FloorDivide, false},
                                                 {"IntTrueDiv", Kind::FloorDivide, false},
                                                 {"Mod", Kind::Modulo, false},
                                                 {"PythonMod", Kind::Modulo, false},
                                                 {"IntMod", Kind::Modulo, false}}};
    const auto* row = std::find_if(kCalls.begin(), kCalls.end(), [&](const Row& one) { return one.name == name; });
    if (row == kCalls.end()) return false;
    std::size_t operands = 0;
    do {
      if (!sum(depth + 1)) return false;
      ++operands;
    } while (take(","));
    if (operands < 2 || (!row->takesMany && operands != 2)) return false;
    step(row->kind, 0, operands);
    return take(")");
  }

  /// 's70', positive=True, integer=True)
  bool quotedSymbol() {
    if (!take("'")) return false;
    const std::size_t end = m_rest.find('\'');
    if (end == 0 || end == std::string_view::npos) return false;
    const std::string_view name = m_rest.substr(0, end);
    const std::size_t close = m_rest.find(')', end);
    if (close == std::string_view::npos || !std::all_of(name.begin(), name.end(), isWordCharacter)) return false;
    m_rest.remove_prefix(close + 1);
    return symbol(name);
  }

  std::string_view m_rest;
  SizeExpression m_made;
};

Result<SizeExpression> SizeExpression::parse(std::string_view text, std::string_view where) {
  if (auto parsed = SizeExpressionParser(text).parse()) return *std::move(parsed);
  return fail(ErrorCode::BadInput,
              "{} is {}, which Cleave cannot compute as a size: only whole numbers and symbols "
              "are supported.",
              where, quotedText(text));
}

std::optional<std::int64_t> SizeExpression::apply(Kind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case Kind::Add: return checkedAdd(a, b);
    case Kind::Multiply: return checkedMul(a, b);
    case Kind::Power: return power(a, b);
    case Kind::FloorDivide: return floorDivide(a, b);
    case Kind::Modulo: {
      const auto quotient = floorDivide(a, b);
      return quotient ? std::optional(a - *quotient * b) : std::nullopt;
    }
    case Kind::Least: return std::min(a, b);
    case Kind::Greatest: return std::max(a, b);
    case Kind::Number:
    case Kind::Symbol: break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> SizeExpression::evaluate(const SymbolSizes& sizes) const {
  std::vector<std::int64_t> results;
  for (const Step& step : m_steps) {
    if (step.kind == Kind::Number) {
      results.push_back(step.number);
    } else if (step.kind == Kind::Symbol) {
      const auto found = sizes.find(m_symbols[static_cast<std::size_t>(step.number)]);
      if (found == sizes.end()) return std::nullopt;
      results.push_back(found->second);
    } else {
      const std::size_t first = results.size() - step.operands;
      std::optional<std::int64_t> result = results[first];
      for (std::size_t i = first + 1; result && i < results.size(); ++i) result = apply(step.kind, *result, results[i]);
      if (!result) return std::nullopt;
      results.resize(first);
      results.push_back(*result);
    }
  }
  return results.back();
}

const std::string* SizeExpression::symbol() const {
  return m_steps.size() == 1 && m_steps[0].kind == Kind::Symbol ? &m_symbols[0] : nullptr;
}

}  // namespace cleave::formats
