#include "rules/strategy_collectives.h"

namespace cleave::rules {

std::optional<CollectiveKind> collectiveBefore(Strategy strategy) {
  const bool gathers = strategy == Strategy::GatherColumn || strategy == Strategy::GatherReplicated;
  return gathers ? std::optional(CollectiveKind::AllGather) : std::nullopt;
}

std::optional<CollectiveKind> collectiveAfter(Strategy strategy) {
  switch (strategy) {
    case Strategy::ColumnGather: return CollectiveKind::AllGather;
    case Strategy::Row:
    case Strategy::Vocab:
    case Strategy::ByExpert:
    case Strategy::InExpert: return CollectiveKind::AllReduce;
    case Strategy::RowScatter:
    case Strategy::VocabScatter: return CollectiveKind::ReduceScatter;
    case Strategy::Replicated:
    case Strategy::Column:
    case Strategy::GatherColumn:
    case Strategy::GatherReplicated:
    case Strategy::ReplicatedOnSequence: break;
  }
  return std::nullopt;
}

}  // namespace cleave::rules
