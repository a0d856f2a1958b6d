#pragma once
/// Python code with which exported files for parallelize_module check that the module computes the same before and
/// after it is split. Internal to this room.
#include <string_view>

namespace cleave::exchange {

extern const std::string_view kDtensorCheck;

}  // namespace cleave::exchange
