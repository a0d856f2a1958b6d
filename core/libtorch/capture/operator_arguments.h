#pragma once
/// An operator's arguments from LibTorch's schema, for code that reads calls written by people. This header does not
/// use LibTorch.
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
  std::optional<graph::Argument> byDefault;  ///< nullopt: the argument is required
};

/// In schema order; nullopt for an operator that LibTorch does not have.
std::optional<std::vector<OperatorArgument>> argumentsOf(std::string_view op);

}  // namespace cleave::torch_capture
