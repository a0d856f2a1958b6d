#pragma once
/// Symbolic sizes of exported programs: "Mul(Integer(2), Symbol('s70', positive=True))", as SymPy's srepr writes them,
/// or "2*s70 + 1".
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
  /// BadInput, beginning with `where`, if the text is not such an expression or exceeds the limits (length, depth).
  static Result<SizeExpression> parse(std::string_view text, std::string_view where);
  /// nullopt: a symbol has no value, or a result does not fit 64 bits.
  std::optional<std::int64_t> evaluate(const SymbolSizes& sizes) const;
  /// Its name if it is a single symbol, else null.
  const std::string* symbol() const;
  /// Each symbol once, in order of appearance.
  const std::vector<std::string>& symbols() const { return m_symbols; }

 private:
  friend class SizeExpressionParser;
  enum class Kind : std::uint8_t { Number, Symbol, Add, Multiply, Power, FloorDivide, Modulo, Least, Greatest };
  struct Step {
    Kind kind = Kind::Number;
    std::int64_t number = 0;   ///< Number: itself; Symbol: index into m_symbols
    std::size_t operands = 0;  ///< number of earlier results it consumes
  };
  static std::optional<std::int64_t> apply(Kind kind, std::int64_t a, std::int64_t b);
  std::vector<Step> m_steps;  ///< operands before the steps that consume them
  std::vector<std::string> m_symbols;
};

}  // namespace cleave::formats
