#pragma once
/// Parts of an operator's name. Views into the given text.
#include <string_view>

namespace cleave::graph {

/// "aten::sum.dim_IntList" → "sum.dim_IntList"
std::string_view withoutNamespace(std::string_view op);
/// "aten::sum.dim_IntList" → "sum"
std::string_view shortName(std::string_view op);

}  // namespace cleave::graph
