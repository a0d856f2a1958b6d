#pragma once
/// Computations with sizes in exported programs: Python's operators on numbers, with torch.export's names. This header
/// does not use LibTorch.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace cleave::torch_capture {

using Number = std::variant<std::int64_t, double, bool>;

/// True for "_operator.add", "math.trunc", "torch.sym_max" and similar.
bool isNumberOperator(std::string_view target);
/// nullopt if there is no result: a wrong number of operands, a division by zero, or more than 64 bits.
std::optional<Number> applyNumberOperator(std::string_view target, std::span<const Number> operands);

}  // namespace cleave::torch_capture
