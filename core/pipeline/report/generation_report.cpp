#include "pipeline/report/generation_report.h"

#include "base/quantities.h"
#include "graph/states.h"
#include "pipeline/memory/predicted_memory.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

std::string cacheHeadsOf(const plan::Plan& step) {
  std::string all;
  const auto own = graph::statesOf(*step.program);
  const auto whole = graph::statesOf(*step.graph);
  for (std::size_t i = 0; i < std::min(own.size(), whole.size()); ++i) {
    const std::int64_t local = step.program->shapeOf(own[i].present)[graph::kCacheHeads];
    const std::int64_t heads = step.graph->shapeOf(whole[i].present)[graph::kCacheHeads];
    std::string text =
        local == heads ? fmt::format("all {} heads", heads) : fmt::format("{} of {} heads", local, heads);
    if (heads == 1) text = "its one head";
    if (!all.empty() && all != text) return {};
    all = std::move(text);
  }
  return all;
}

}  // namespace

double GenerationReport::tokensPerSecond() const {
  if (figures.decodeMicroseconds <= 0) return 0;
  return static_cast<double>(tokens.rows * figures.steps) * 1e6 / static_cast<double>(figures.decodeMicroseconds);
}

Result<GenerationReport> generationReport(const fs::path& outputs, const program::Generation& asked,
                                          const plan::Plan& prompt, const plan::Plan& step,
                                          const std::vector<protocol::Generated>& byRank) {
  GenerationReport report;
  CLEAVE_TRY(report.tokens, readTokens(outputs));
  report.promptLength = prompt.model.sequence;
  report.asked = asked;
  report.cachePositions = step.model.input.cachePositions;
  report.cacheHeads = cacheHeadsOf(step);
  report.predictedCacheBytes = step.cost.sum.kvCache;
  report.predictedMemory = predictedMemory(prompt, {.step = &step});
  for (const protocol::Generated& rank : byRank) {
    if (rank.prefillMicroseconds + rank.decodeMicroseconds >
        report.figures.prefillMicroseconds + report.figures.decodeMicroseconds)
      report.figures = rank;
    report.cacheBytes.push_back(rank.cacheBytes);
  }
  return report;
}

std::vector<std::string> cacheViolations(const GenerationReport& report) {
  std::vector<std::string> found;
  for (std::size_t rank = 0; rank < report.cacheBytes.size(); ++rank) {
    const std::int64_t bytes = report.cacheBytes[rank];
    if (bytes == report.predictedCacheBytes) continue;
    found.push_back(fmt::format("Rank {} has {} of keys and values, but the plan predicts {}.", rank,
                                counted(bytes, "byte"), report.predictedCacheBytes));
  }
  return found;
}

}  // namespace cleave::pipeline
