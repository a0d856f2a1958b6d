#pragma once
/// Python code at the start of exported programs for spmd_types: the operator calls, and Cleave's own operators.
/// Internal to this room.
#include <string_view>

namespace cleave::exchange {

extern const std::string_view kSpmdPrelude, kSpmdCheck;

}  // namespace cleave::exchange
