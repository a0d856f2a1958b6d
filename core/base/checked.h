#pragma once
/// 64-bit arithmetic without wrapping, for sizes from files: every function returns nullopt on overflow.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace cleave {

inline std::optional<std::int64_t> checkedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::int64_t> checkedMul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Sums and products of estimates that saturate at the largest 64-bit value. Not for negative numbers.
inline std::int64_t saturatingAdd(std::int64_t a, std::int64_t b) {
  return checkedAdd(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}
inline std::int64_t saturatingMul(std::int64_t a, std::int64_t b) {
  return checkedMul(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

/// Product of the sizes of a shape (1 for a scalar); nullopt when a size is negative or the product overflows.
inline std::optional<std::int64_t> checkedProduct(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (std::int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    const auto next = checkedMul(product, size);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

}  // namespace cleave
