#pragma once
/// 64 bits that tell apart contents that are not alike by accident (FNV-1a, a word at a time): for comparing what ranks
/// hold. No protection against anybody who looks for two that are alike.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace cleave {

class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    mix(bytes.size());
    addPart(bytes);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// Of one content in parts: the same however it is cut, as long as every part but the last has a multiple of 8 bytes.
  void addPart(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t taken = std::min(bytes.size(), sizeof word);
      std::memcpy(&word, bytes.data(), taken);
      mix(word);
      bytes = bytes.subspan(taken);
    }
  }
  std::uint64_t value() const { return m_hash; }

 private:
  void mix(std::uint64_t word) {
    m_hash = (m_hash ^ word) * 0x100000001B3ull;
    m_hash ^= m_hash >> 29;  // else a word's highest bits would never reach the others
  }
  std::uint64_t m_hash = 0xCBF29CE484222325ull;
};

}  // namespace cleave
