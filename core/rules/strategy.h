#pragma once
// clang-format off
/// Strategies: the ways to compute a layer in parallel. A strategy fixes the placements of input, weight, bias and
/// result and the collectives around the layer; it is the only thing in a plan that changes a placement.
///
/// | strategy               | input   | weight (Linear)      | result      | collective                               |
/// |------------------------|---------|----------------------|-------------|------------------------------------------|
/// | replicated             | R       | R                    | R           |                                          |
/// | column                 | R       | split on outAxis     | S(last)     | (Embedding of heads: split on inAxis)    |
/// | column+gather          | R       | split on outAxis     | R           | all-gather after                         |
/// | row                    | S(last) | split on inAxis      | R           | all-reduce after                         |
/// | row+scatter            | S(last) | split on inAxis      | S(sequence) | reduce-scatter after                     |
/// | gather+column          | S(seq)  | split on outAxis     | S(last)     | all-gather before                        |
/// | gather+replicated      | S(seq)  | R                    | R           | all-gather before                        |
/// | replicated-on-sequence | S(seq)  | R                    | S(seq)      | (weight gradient needs an all-reduce)    |
/// | vocab                  | R       | split on vocabulary  | R           | all-reduce after; loss: inside           |
/// | vocab+scatter          | R       | split on vocabulary  | S(sequence) | reduce-scatter after (Embedding)         |
/// | by-expert              | R       | split on the experts | R           | all-reduce after (Experts)               |
/// | in-expert              | R       | inside each expert   | R           | all-reduce after; gate and up are blocks |
///
/// Sources: Megatron-LM (arXiv:1909.08053, section 3; sequence parallelism arXiv:2205.05198, section 4.2.2).
// clang-format on
#include <cstdint>
#include <optional>
#include <string_view>

namespace cleave::rules {

enum class Strategy : std::uint8_t {
  Replicated,
  Column,
  ColumnGather,
  Row,
  RowScatter,
  GatherColumn,
  GatherReplicated,
  ReplicatedOnSequence,
  Vocab,
  VocabScatter,
  ByExpert,
  InExpert,
};
std::string_view toText(Strategy strategy);                    ///< "column+gather", "replicated"
std::optional<Strategy> parseStrategy(std::string_view text);  ///< also "whole", the earlier word for "replicated"

/// "column", "row", "vocab", "expert" or "replicated": the name in the reference and in pins.
std::string_view axisOf(Strategy strategy);

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter };
std::string_view toText(CollectiveKind kind);  ///< "all_reduce", "all_gather", "reduce_scatter"

}  // namespace cleave::rules
