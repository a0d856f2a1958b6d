#pragma once
/// What LibTorch's schema says of an operator's arguments, for whoever reads calls that people write. No LibTorch in
/// this header.
#include "graph/graph.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::torch_capture {

struct OperatorArgument {
  std::string name;            ///< "keepdim"
  bool isElementType = false;  ///< "dtype"
  bool isDevice = false;
  std::optional<graph::Argument> byDefault;  ///< nullopt: it must be given
};

/// In schema order; nullopt for an operator that LibTorch does not know.
std::optional<std::vector<OperatorArgument>> argumentsOf(std::string_view op);

}  // namespace cleave::torch_capture
