#include "graph/types.h"

#include "base/checked.h"
#include "base/result.h"

#include <array>

namespace cleave::graph {
namespace {

struct DTypeRow {
  DType dtype;
  int bytes;
  bool floating;
  std::string_view shortName, torchName, storedName;
};

constexpr std::array kRows{
    DTypeRow{DType::Float64, 8, true, "f64", "float64", "F64"},
    DTypeRow{DType::Float32, 4, true, "f32", "float32", "F32"},
    DTypeRow{DType::Float16, 2, true, "f16", "float16", "F16"},
    DTypeRow{DType::BFloat16, 2, true, "bf16", "bfloat16", "BF16"},
    DTypeRow{DType::Float8E4M3, 1, true, "f8e4m3", "float8_e4m3fn", "F8_E4M3"},
    DTypeRow{DType::Float8E5M2, 1, true, "f8e5m2", "float8_e5m2", "F8_E5M2"},
    DTypeRow{DType::Int64, 8, false, "i64", "int64", "I64"},
    DTypeRow{DType::Int32, 4, false, "i32", "int32", "I32"},
    DTypeRow{DType::Int16, 2, false, "i16", "int16", "I16"},
    DTypeRow{DType::Int8, 1, false, "i8", "int8", "I8"},
    DTypeRow{DType::UInt8, 1, false, "u8", "uint8", "U8"},
    DTypeRow{DType::Bool, 1, false, "bool", "bool", "BOOL"},
};

const DTypeRow& rowOf(DType dtype) {
  for (const DTypeRow& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  CLEAVE_CHECK(false, "dtype {}", static_cast<int>(dtype));
  return kRows[0];
}

}  // namespace

int itemSize(DType dtype) { return rowOf(dtype).bytes; }
bool isFloatingPoint(DType dtype) { return rowOf(dtype).floating; }
std::string_view toText(DType dtype) { return rowOf(dtype).shortName; }
std::string_view torchName(DType dtype) { return rowOf(dtype).torchName; }

std::optional<DType> parseDType(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (const DTypeRow& row : kRows) {
    if (text == row.shortName || text == row.torchName || text == row.storedName) return row.dtype;
  }
  if (text == "half") return DType::Float16;
  if (text == "float") return DType::Float32;
  if (text == "long") return DType::Int64;
  return std::nullopt;
}

std::int64_t elementCount(const Shape& shape) {
  const auto count = checkedProduct(shape);
  CLEAVE_CHECK(count.has_value(), "shape {}", toText(shape));
  return *count;
}

std::int64_t sizeInBytes(const TensorType& type) { return elementCount(type.shape) * itemSize(type.dtype); }

std::string toText(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string toText(const TensorType& type) {
  std::string text(toText(type.dtype));
  text += '[';
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(type.shape[i]);
  }
  return text + "]";
}

}  // namespace cleave::graph
