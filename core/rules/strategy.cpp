#include "rules/strategy.h"

#include <array>

namespace cleave::rules {
namespace {

constexpr std::array<std::string_view, 12> kStrategyNames = {
    "replicated",  "column",        "column+gather",     "row",
    "row+scatter", "gather+column", "gather+replicated", "replicated-on-sequence",
    "vocab",       "vocab+scatter", "by-expert",         "in-expert",
};
static_assert(kStrategyNames.size() == std::size_t(Strategy::InExpert) + 1 && !kStrategyNames.back().empty(),
              "one name for each strategy, in order");

/// Files of version 0.1.0 say "whole" for "replicated".
std::string_view earlierName(Strategy strategy) {
  switch (strategy) {
    case Strategy::Replicated: return "whole";
    case Strategy::GatherReplicated: return "gather+whole";
    case Strategy::ReplicatedOnSequence: return "whole-on-sequence";
    default: return toText(strategy);
  }
}

}  // namespace

std::string_view toText(Strategy strategy) { return kStrategyNames[static_cast<std::size_t>(strategy)]; }

std::optional<Strategy> parseStrategy(std::string_view text) {
  for (std::size_t i = 0; i < kStrategyNames.size(); ++i) {
    const auto strategy = static_cast<Strategy>(i);
    if (text == toText(strategy) || text == earlierName(strategy)) return strategy;
  }
  return std::nullopt;
}

std::string_view axisOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::Column:
    case Strategy::ColumnGather:
    case Strategy::GatherColumn: return "column";
    case Strategy::Row:
    case Strategy::RowScatter: return "row";
    case Strategy::Vocab:
    case Strategy::VocabScatter: return "vocab";
    case Strategy::ByExpert:
    case Strategy::InExpert: return "expert";
    case Strategy::Replicated:
    case Strategy::GatherReplicated:
    case Strategy::ReplicatedOnSequence: return "replicated";
  }
  return "replicated";
}

std::string_view toText(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce: return "all_reduce";
    case CollectiveKind::AllGather: return "all_gather";
    case CollectiveKind::ReduceScatter: return "reduce_scatter";
  }
  return "all_reduce";
}

}  // namespace cleave::rules
