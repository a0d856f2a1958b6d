#include "libtorch/bridge/types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace cleave::bridge {
namespace {

using graph::DType;
constexpr std::array<std::pair<DType, at::ScalarType>, 12> kPairs = {{
    {DType::Float64, at::kDouble},
    {DType::Float32, at::kFloat},
    {DType::Float16, at::kHalf},
    {DType::BFloat16, at::kBFloat16},
    {DType::Float8E4M3, at::kFloat8_e4m3fn},
    {DType::Float8E5M2, at::kFloat8_e5m2},
    {DType::Int64, at::kLong},
    {DType::Int32, at::kInt},
    {DType::Int16, at::kShort},
    {DType::Int8, at::kChar},
    {DType::UInt8, at::kByte},
    {DType::Bool, at::kBool},
}};

}  // namespace

at::ScalarType toScalarType(DType dtype) {
  for (const auto& [ours, theirs] : kPairs) {
    if (ours == dtype) return theirs;
  }
  return at::ScalarType::Undefined;
}

std::optional<DType> toDType(at::ScalarType type) {
  for (const auto& [ours, theirs] : kPairs) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "absent";
  const auto dtype = toDType(tensor.scalar_type());
  const std::string_view type = dtype ? graph::toText(*dtype) : std::string_view(c10::toString(tensor.scalar_type()));
  return fmt::format("{}[{}]", type, fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ","));
}

}  // namespace cleave::bridge
