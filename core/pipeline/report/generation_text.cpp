#include "pipeline/report/generation_text.h"

#include "base/quantities.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace cleave::pipeline {
namespace {

/// "1 2 3 | 4 5 6 ... (20 more)"
std::string rowText(const GenerationReport& report, std::int64_t row) {
  constexpr std::int64_t kMostNamed = 64;
  std::string text = "tokens:";
  const std::int64_t from = std::max<std::int64_t>(0, report.promptLength - kMostNamed);
  if (from > 0) text += fmt::format(" ({} before)", from);
  const std::int64_t to = std::min(report.tokens.length, report.promptLength + kMostNamed);
  for (std::int64_t i = from; i < to; ++i)
    text += fmt::format("{} {}", i == report.promptLength ? " |" : "", report.tokens.at(row, i));
  if (to < report.tokens.length) text += fmt::format(" ({} more)", report.tokens.length - to);
  return text + '\n';
}

std::string endText(const GenerationReport& report) {
  const std::int64_t made = report.tokens.length - report.promptLength;
  if (made >= report.asked.tokens) return {};
  return fmt::format("ended after {} of {}: {} ended with {}\n", made, counted(report.asked.tokens, "token"),
                     report.tokens.rows == 1 ? "the row" : "all rows",
                     report.asked.endTokens.size() == 1
                         ? fmt::format("the model's end token {}", report.asked.endTokens.front())
                         : fmt::format("one of the model's end tokens {}", fmt::join(report.asked.endTokens, ", ")));
}

std::string speedText(const GenerationReport& report) {
  const auto ms = [](std::int64_t microseconds) { return static_cast<double>(microseconds) / 1000; };
  std::string text = fmt::format("prompt of {} in {:.1f} ms", counted(report.promptLength, "token"),
                                 ms(report.figures.prefillMicroseconds));
  if (report.tokens.rows > 1) text = fmt::format("{} rows, ", report.tokens.rows) + text;
  if (report.figures.steps == 0) return text + '\n';
  return text + fmt::format("; {} in {:.1f} ms, {:.1f} tokens/s\n", counted(report.figures.steps, "decode step"),
                            ms(report.figures.decodeMicroseconds), report.tokensPerSecond());
}

std::string cacheText(const GenerationReport& report) {
  const std::string_view everyRank = report.cacheBytes.size() == 1 ? "the rank" : "each rank";
  std::string text = fmt::format("KV cache for {}", counted(report.cachePositions, "position"));
  if (!report.cacheHeads.empty()) text += fmt::format(", {} on {}", report.cacheHeads, everyRank);
  text += ": ";
  const bool isAlike = std::adjacent_find(report.cacheBytes.begin(), report.cacheBytes.end(), std::not_equal_to<>()) ==
                       report.cacheBytes.end();
  if (isAlike && !report.cacheBytes.empty()) {
    text += fmt::format("{} measured on {}", bytesText(report.cacheBytes.front()), everyRank);
  } else {
    for (std::size_t rank = 0; rank < report.cacheBytes.size(); ++rank)
      text += fmt::format("{}{} measured on rank {}", rank == 0 ? "" : ", ", bytesText(report.cacheBytes[rank]), rank);
  }
  return text + fmt::format(", {} predicted\n", bytesText(report.predictedCacheBytes));
}

}  // namespace

std::string generationText(const RunReport& report) {
  if (!report.generation) return {};
  const GenerationReport& generated = *report.generation;
  std::string text;
  for (std::int64_t row = 0; row < generated.tokens.rows; ++row) text += rowText(generated, row);
  text += endText(generated) + speedText(generated) + cacheText(generated);
  for (const OutputDifference& output : report.outputs) {
    const std::string where = output.rank == 0 ? "" : fmt::format("rank {}, ", output.rank);
    if (output.undetermined > 0) {
      text += fmt::format(
          "{}{} after a choice that rounding alone changes: it also changes when the unsplit run reorders its sums\n",
          where, counted(output.undetermined, "token differs", "tokens differ"));
      if (output.within()) continue;
    }
    text += output.within()
                ? fmt::format("{}every token equals that of {}\n", where, report.comparedWith)
                : fmt::format("{}{} from {}: {}\n", where, counted(output.outside, "token differs", "tokens differ"),
                              report.comparedWith, generated.firstDifference);
  }
  return text;
}

}  // namespace cleave::pipeline
