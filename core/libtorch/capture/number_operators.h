#pragma once
/// What exported programs compute of sizes: Python's operators on numbers, by the names that torch.export gives them.
/// No LibTorch in this header.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace cleave::torch_capture {

using Number = std::variant<std::int64_t, double, bool>;

/// True for "_operator.add", "math.trunc", "torch.sym_max" and their kind.
bool isNumberOperator(std::string_view target);
/// nullopt where there is no result: another count of operands, a division by zero, more than 64 bits.
std::optional<Number> applyNumberOperator(std::string_view target, std::span<const Number> operands);

}  // namespace cleave::torch_capture
