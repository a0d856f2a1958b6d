#include "pipeline/compare.h"

#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace cleave::pipeline {
namespace {

constexpr std::int64_t kChunkElements = 1 << 16;

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

using Loader = double (*)(const std::byte*);

Loader loaderOf(graph::DType dtype) {
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

struct Side {
  const RandomAccessFile& file;
  const formats::SafetensorsEntry& entry;
  Loader loader;
  std::vector<std::byte> chunk;

  Result<void> read(std::int64_t first, std::int64_t count) {
    const int itemBytes = graph::itemSize(entry.type.dtype);
    chunk.resize(static_cast<std::size_t>(count * itemBytes));
    return file.readAt(entry.offset + first * itemBytes, chunk);
  }
  double at(std::int64_t i) const { return loader(chunk.data() + i * graph::itemSize(entry.type.dtype)); }
};

Result<OutputDifference> compareOne(const std::string& name, Side actual, Side expected, double rtol, double atol) {
  OutputDifference difference;
  difference.name = name;
  const std::int64_t total = graph::elementCount(actual.entry.type.shape);
  for (std::int64_t first = 0; first < total; first += kChunkElements) {
    const std::int64_t count = std::min(kChunkElements, total - first);
    CLEAVE_TRY_VOID(actual.read(first, count));
    CLEAVE_TRY_VOID(expected.read(first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      const double a = actual.at(i);
      const double b = expected.at(i);
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      const double absolute = std::isnan(a - b) ? HUGE_VAL : std::abs(a - b);
      difference.maxAbs = std::max(difference.maxAbs, absolute);
      difference.maxRel = std::max(difference.maxRel, b == 0 ? HUGE_VAL : absolute / std::abs(b));
      difference.within = difference.within && absolute <= atol + rtol * std::abs(b);
    }
  }
  return difference;
}

}  // namespace

Result<std::vector<OutputDifference>> compareTensors(const fs::path& actualPath, const fs::path& expectedPath, double rtol, double atol) {
  CLEAVE_TRY(const auto actualFile, RandomAccessFile::open(actualPath));
  CLEAVE_TRY(const auto expectedFile, RandomAccessFile::open(expectedPath));
  CLEAVE_TRY(const auto actual, formats::readSafetensorsHeader(actualFile, actualPath.string()));
  CLEAVE_TRY(const auto expected, formats::readSafetensorsHeader(expectedFile, expectedPath.string()));
  std::vector<OutputDifference> differences;
  for (const auto& [name, entry] : actual.tensors) {
    const auto other = expected.tensors.find(name);
    if (other == expected.tensors.end()) continue;
    if (graph::elementCount(entry.type.shape) != graph::elementCount(other->second.type.shape)) {
      return fail(ErrorCode::BadInput, "{} has shape {} in {}, but the run gave {}: expect a file made with the same batch, sequence and outputs.",
                  name, graph::toText(other->second.type.shape), expectedPath.string(), graph::toText(entry.type.shape));
    }
    Side actualSide{actualFile, entry, loaderOf(entry.type.dtype), {}};
    Side expectedSide{expectedFile, other->second, loaderOf(other->second.type.dtype), {}};
    if (!actualSide.loader || !expectedSide.loader) return fail(ErrorCode::BadInput, "{} is stored in an 8-bit float type, which cannot be compared.", name);
    CLEAVE_TRY(auto difference, compareOne(name, std::move(actualSide), std::move(expectedSide), rtol, atol));
    differences.push_back(std::move(difference));
  }
  if (differences.empty()) {
    std::string names;
    for (const auto& [name, entry] : actual.tensors) names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorCode::BadInput, "{} holds none of the run's outputs ({}).", expectedPath.string(), names);
  }
  return differences;
}

}  // namespace cleave::pipeline
