#pragma once
/// Python that exported files for parallelize_module check themselves with: the module computes the same before and
/// after it is split. Internal to this room.
#include <string_view>

namespace cleave::exchange {

extern const std::string_view kDtensorCheck;

}  // namespace cleave::exchange
