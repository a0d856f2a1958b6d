#include "rules/strategy_context.h"

#include <algorithm>

namespace cleave::rules {
namespace {

/// The enumerator with this name.
template <class T, std::size_t N>
std::optional<T> parseWord(const std::array<std::string_view, N>& words, std::string_view text) {
  const auto at = std::find(words.begin(), words.end(), text);
  return at == words.end() ? std::nullopt : std::optional(static_cast<T>(at - words.begin()));
}

}  // namespace

std::string_view toText(CandidateSet candidateSet) {
  return kCandidateSetWords[static_cast<std::size_t>(candidateSet)];
}
std::optional<CandidateSet> parseCandidateSet(std::string_view text) {
  return parseWord<CandidateSet>(kCandidateSetWords, text);
}
std::string_view toText(SequenceParallel mode) { return kSequenceParallelWords[static_cast<std::size_t>(mode)]; }
std::optional<SequenceParallel> parseSequenceParallel(std::string_view text) {
  return parseWord<SequenceParallel>(kSequenceParallelWords, text);
}

}  // namespace cleave::rules
