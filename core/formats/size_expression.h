#pragma once
/// Sizes of exported programs that are computed from symbols: "Mul(Integer(2), Symbol('s70', positive=True))" as
/// SymPy's srepr writes them, or "2*s70 + 1".
///
///     CLEAVE_TRY(const SizeExpression size, SizeExpression::parse("2*s70 + 1", "llama.pt2: input_ids"));
///     size.evaluate({{"s70", 16}});   // 33
#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

using SymbolSizes = std::map<std::string, std::int64_t>;

class SizeExpression {
 public:
  /// BadInput, beginning with `where`, for what is no such expression or one beyond bounds (length, depth).
  static Result<SizeExpression> parse(std::string_view text, std::string_view where);
  /// nullopt where a symbol has no size, or a result does not exist in 64 bits.
  std::optional<std::int64_t> evaluate(const SymbolSizes& sizes) const;
  /// Its name when it is a symbol and nothing else, else null.
  const std::string* symbol() const;
  /// Each once, in order of appearance.
  const std::vector<std::string>& symbols() const { return m_symbols; }

 private:
  friend class SizeExpressionParser;
  enum class Kind : std::uint8_t { Number, Symbol, Add, Multiply, Power, FloorDivide, Modulo, Least, Greatest };
  struct Step {
    Kind kind = Kind::Number;
    std::int64_t number = 0;   ///< Number: itself; Symbol: index into m_symbols
    std::size_t operands = 0;  ///< how many results of earlier steps it takes
  };
  static std::optional<std::int64_t> apply(Kind kind, std::int64_t a, std::int64_t b);
  std::vector<Step> m_steps;  ///< operands before what takes them
  std::vector<std::string> m_symbols;
};

}  // namespace cleave::formats
