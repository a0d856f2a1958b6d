#pragma once
/// Tuples of small integers as keys of a hash map, looked up by span without a copy.
#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace cleave {

using IdTuple = std::vector<std::uint32_t>;

struct IdTupleHash {
  using is_transparent = void;
  std::size_t operator()(std::span<const std::uint32_t> words) const {
    std::uint64_t seed = 0x9e3779b97f4a7c15ull + words.size();
    for (const std::uint32_t word : words) {
      seed = (seed ^ word) * 0xff51afd7ed558ccdull;
      seed ^= seed >> 32;
    }
    return static_cast<std::size_t>(seed);
  }
};
struct IdTupleEqual {
  using is_transparent = void;
  bool operator()(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};
template <class T>
using IdTupleMap = std::unordered_map<IdTuple, T, IdTupleHash, IdTupleEqual>;

inline bool contains(const IdTuple& words, std::uint32_t word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline void addOnce(IdTuple& words, std::uint32_t word) {
  if (!contains(words, word)) words.push_back(word);
}
/// Appends a 64-bit number.
inline void addNumber(IdTuple& words, std::int64_t number) {
  words.push_back(static_cast<std::uint32_t>(number));
  words.push_back(static_cast<std::uint32_t>(number >> 32));
}

}  // namespace cleave
