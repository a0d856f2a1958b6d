#pragma once
/// Tuples of small integers as keys of a hash map; looked up by span, without a copy.
#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace cleave {

using Words = std::vector<std::uint32_t>;

struct WordsHash {
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
struct WordsEqual {
  using is_transparent = void;
  bool operator()(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};
template <class T>
using WordsMap = std::unordered_map<Words, T, WordsHash, WordsEqual>;

inline bool contains(const Words& words, std::uint32_t word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline void addOnce(Words& words, std::uint32_t word) {
  if (!contains(words, word)) words.push_back(word);
}
/// Appends a number of 64 bits.
inline void addNumber(Words& words, std::int64_t number) {
  words.push_back(static_cast<std::uint32_t>(number));
  words.push_back(static_cast<std::uint32_t>(number >> 32));
}

}  // namespace cleave
