#pragma once
/// 64-bit digest (FNV-1a, one word at a time) for comparing what ranks hold. It distinguishes contents that differ by
/// accident. It does not protect against deliberate collisions.
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
  /// Digest of one content in parts. The result does not depend on the cuts if every part but the last has a multiple
  /// of 8 bytes.
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
    m_hash ^= m_hash >> 29;  // without this shift a word's highest bits would not reach the others
  }
  std::uint64_t m_hash = 0xCBF29CE484222325ull;
};

}  // namespace cleave
