#include "formats/element.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cleave::formats {
namespace {

template <class T>
double load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double bfloat16ToDouble(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// IEEE 754 binary16.
double halfToDouble(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace

ElementLoader elementLoader(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::Float64: return load<double>;
    case graph::DType::Float32: return load<float>;
    case graph::DType::Float16: return halfToDouble;
    case graph::DType::BFloat16: return bfloat16ToDouble;
    case graph::DType::Int64: return load<std::int64_t>;
    case graph::DType::Int32: return load<std::int32_t>;
    case graph::DType::Int16: return load<std::int16_t>;
    case graph::DType::Int8: return load<std::int8_t>;
    case graph::DType::UInt8:
    case graph::DType::Bool: return load<std::uint8_t>;
    case graph::DType::Float8E4M3:
    case graph::DType::Float8E5M2: return nullptr;
  }
  return nullptr;
}

}  // namespace cleave::formats
