#include "reductions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cleave::shims {
namespace {

struct BFloat16 {
  std::uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    bits = static_cast<std::uint16_t>((whole + 0x7fffu + ((whole >> 16) & 1u)) >> 16);  // to nearest, ties to even
    if (value != value) bits = 0x7fc0;
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, _Float16>, float, T>;

template <class T>
bool reduceAs(ncclRedOp_t operation, const std::vector<const char*>& inputs, std::size_t bytes, char* out) {
  using Sum = SumOf<T>;
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    Sum total{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      T element;
      std::memcpy(&element, inputs[rank] + at, sizeof element);
      const auto value = static_cast<Sum>(element);
      if (rank == 0) {
        total = value;
        continue;
      }
      switch (operation) {
        case ncclSum:
        case ncclAvg: total = static_cast<Sum>(total + value); break;
        case ncclProd: total = static_cast<Sum>(total * value); break;
        case ncclMax: total = std::max(total, value); break;
        case ncclMin: total = std::min(total, value); break;
        default: return false;
      }
    }
    if (operation == ncclAvg) total = static_cast<Sum>(total / static_cast<Sum>(inputs.size()));
    const auto result = static_cast<T>(total);
    std::memcpy(out + at, &result, sizeof result);
  }
  return true;
}

}  // namespace

std::size_t sizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

bool reduce(ncclRedOp_t operation, ncclDataType_t type, const std::vector<const char*>& inputs, std::size_t bytes,
            void* out) {
  char* const to = static_cast<char*>(out);
  switch (type) {
    case ncclInt8: return reduceAs<std::int8_t>(operation, inputs, bytes, to);
    case ncclUint8: return reduceAs<std::uint8_t>(operation, inputs, bytes, to);
    case ncclInt32: return reduceAs<std::int32_t>(operation, inputs, bytes, to);
    case ncclUint32: return reduceAs<std::uint32_t>(operation, inputs, bytes, to);
    case ncclInt64: return reduceAs<std::int64_t>(operation, inputs, bytes, to);
    case ncclUint64: return reduceAs<std::uint64_t>(operation, inputs, bytes, to);
    case ncclFloat16: return reduceAs<_Float16>(operation, inputs, bytes, to);
    case ncclBfloat16: return reduceAs<BFloat16>(operation, inputs, bytes, to);
    case ncclFloat32: return reduceAs<float>(operation, inputs, bytes, to);
    case ncclFloat64: return reduceAs<double>(operation, inputs, bytes, to);
    default: return false;
  }
}

}  // namespace cleave::shims
