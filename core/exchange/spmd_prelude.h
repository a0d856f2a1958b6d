#pragma once
/// Python that exported programs for spmd_types begin with: how operators are called, and Cleave's own operators.
/// Internal to this room.
#include <string_view>

namespace cleave::exchange {

extern const std::string_view kSpmdPrelude, kSpmdCheck;

}  // namespace cleave::exchange
