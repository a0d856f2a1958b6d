#pragma once
/// Element types and tensor types. Shapes are concrete: symbolic sizes are bound before a graph is built.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::graph {

enum class DType : std::uint8_t {
  Float64,
  Float32,
  Float16,
  BFloat16,
  Float8E4M3,
  Float8E5M2,
  Int64,
  Int32,
  Int16,
  Int8,
  UInt8,
  Bool,
};

/// Bytes of one element.
int itemSize(DType dtype);
bool isFloatingPoint(DType dtype);
/// Short text form: "f32", "bf16", "i64", "bool", "f8e4m3", ...
std::string_view toText(DType dtype);
/// PyTorch's names: "float32", "bfloat16".
std::string_view torchName(DType dtype);
/// Accepts the short form, PyTorch's name ("float32", "torch.bfloat16") and safetensors' name ("F32", "BF16").
std::optional<DType> parseDType(std::string_view text);

using Shape = std::vector<std::int64_t>;

struct TensorType {
  DType dtype = DType::Float32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

/// Product of the sizes. The graph's verification guarantees that elements and bytes fit 64 bits.
std::int64_t elementCount(const Shape& shape);
std::int64_t sizeInBytes(const TensorType& type);
/// "[8, 512, 4096]"
std::string toText(const Shape& shape);
/// "bf16[8,512,4096]", the text form of a graph.
std::string toText(const TensorType& type);

}  // namespace cleave::graph
