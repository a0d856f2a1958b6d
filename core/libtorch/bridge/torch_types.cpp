#include "libtorch/bridge/torch_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cleave::torch_rank {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "absent";
  const auto dtype = models::toDType(tensor.scalar_type());
  std::string text(dtype ? graph::toText(*dtype) : std::string_view(c10::toString(tensor.scalar_type())));
  return fmt::format("{}[{}]", text, fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ","));
}

}  // namespace cleave::torch_rank
