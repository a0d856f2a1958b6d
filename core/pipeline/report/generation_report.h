#pragma once
/// The tokens that a run generated, its speed, and the memory of its KV cache.
#include "base/result.h"
#include "pipeline/compare/token_rows.h"
#include "plan/plan.h"
#include "program/generation.h"
#include "protocol/events.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct GenerationReport {
  TokenRows tokens;  ///< with the prompt
  std::int64_t promptLength = 0;
  program::Generation asked;
  protocol::Generated figures;  ///< figures of the slowest rank
  std::int64_t cachePositions = 0;
  /// Heads of the KV cache per rank: "2 of 4 heads" or "all 4 heads"; empty if layers differ.
  std::string cacheHeads;
  std::int64_t predictedCacheBytes = 0;  ///< predicted bytes per rank
  std::vector<std::int64_t> cacheBytes;  ///< by rank, measured by its allocator
  std::int64_t predictedMemory = 0;      ///< predicted peak per rank: see memory/predicted_memory.h
  std::string firstDifference;           ///< "token 5 of row 0 is 19, not 25"; empty: all tokens are as expected
  double tokensPerSecond() const;        ///< rate of the decode steps over all rows; 0 without decode steps
};

/// Reads the outputs of the ranks. `byRank`: the report of each rank.
Result<GenerationReport> generationReport(const std::filesystem::path& outputs, const program::Generation& asked,
                                          const plan::Plan& prompt, const plan::Plan& step,
                                          const std::vector<protocol::Generated>& byRank);
/// One sentence for each rank whose cache differs from the predicted bytes.
std::vector<std::string> cacheViolations(const GenerationReport& report);

}  // namespace cleave::pipeline
