#pragma once
/// The settings that decide which strategies a layer may use: the ranks, the candidate set and sequence parallelism.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cleave::rules {

enum class CandidateSet : std::uint8_t { Optimum, Full };
enum class SequenceParallel : std::uint8_t { Off, On, Auto };
/// The names in files, flags and scripts, in the order of the enums.
inline constexpr std::array<std::string_view, 2> kCandidateSetWords{"optimum", "full"};
inline constexpr std::array<std::string_view, 3> kSequenceParallelWords{"off", "on", "auto"};
std::string_view toText(CandidateSet candidateSet);
std::optional<CandidateSet> parseCandidateSet(std::string_view text);
std::string_view toText(SequenceParallel mode);
std::optional<SequenceParallel> parseSequenceParallel(std::string_view text);

struct StrategyContext {
  int worldSize = 1;
  CandidateSet candidateSet = CandidateSet::Optimum;
  SequenceParallel sequenceParallel = SequenceParallel::Off;
};

}  // namespace cleave::rules
