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
#include "graph/layers.h"
#include "rules/placement.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
std::string_view toText(Strategy strategy);   ///< "column+gather", "replicated"
std::string_view inFiles(Strategy strategy);  ///< the word of plan and trace files: "whole" for "replicated"
std::optional<Strategy> parseStrategy(std::string_view text);  ///< either word

/// "column", "row", "vocab", "expert" or "replicated": how the reference names it, and what pins say.
std::string_view axisOf(Strategy strategy);

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter };
std::string_view toText(CollectiveKind kind);  ///< "all_reduce", "all_gather", "reduce_scatter"

enum class CandidateSet : std::uint8_t { Optimum, Full };
enum class SequenceParallel : std::uint8_t { Off, On, Auto };
/// How files, flags and scripts write them, in the order of the enums.
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

/// One strategy a layer may take here: sizes divide, and the candidate set has it.
struct LayerStrategy {
  Strategy strategy = Strategy::Replicated;
  Placement input, weight, bias, result;
  std::optional<CollectiveKind> before, after;
  std::string reason;             ///< "4096 output features split over 8 ranks, 512 each"
  std::optional<Placement> down;  ///< of LayerShape::down; nullopt: the layer has none
};

/// True when no rank holds the whole weight: parts that every rank has (as many replicas as ranks) do not count.
bool isSplit(const LayerStrategy& option, int worldSize);

/// The option that a layer takes, or none: made once and shared by all copies, so that a plan of thousands of equal
/// layers holds each strategy once. Used like std::optional<LayerStrategy>, but immutable; any thread.
class TakenStrategy {
 public:
  TakenStrategy() = default;
  TakenStrategy(std::nullopt_t) {}
  TakenStrategy(LayerStrategy option) : m_option(std::make_shared<const LayerStrategy>(std::move(option))) {}
  TakenStrategy(std::optional<LayerStrategy> option) {
    if (option) m_option = std::make_shared<const LayerStrategy>(*std::move(option));
  }
  operator std::optional<LayerStrategy>() const { return m_option ? std::optional(*m_option) : std::nullopt; }

  bool has_value() const { return m_option != nullptr; }
  explicit operator bool() const { return has_value(); }
  const LayerStrategy& operator*() const { return *m_option; }
  const LayerStrategy* operator->() const { return m_option.get(); }
  void reset() { m_option.reset(); }

 private:
  std::shared_ptr<const LayerStrategy> m_option;
};

/// "257 vocabulary rows do not divide by 2 ranks"; `many` where it is not one plus "s".
std::string doesNotDivide(std::int64_t count, std::string_view one, int ranks, std::string_view many = {});

/// One strategy that the candidate set has but the sizes forbid, with the numbers.
struct Refusal {
  Strategy strategy = Strategy::Replicated;
  std::string reason;  ///< "257 vocabulary rows do not divide by 2 ranks"
};

/// All strategies of a layer whatever its input's placement, in candidate order (the reference's order for
/// CandidateSet::Optimum); a search keeps those whose `input` is what the input has. `whole` is offered where nothing
/// else can be.
struct LayerStrategies {
  std::vector<LayerStrategy> offered;
  std::vector<Refusal> refused;
};
LayerStrategies layerStrategies(const graph::Graph& graph, graph::NodeId node, const graph::LayerShape& layer,
                                const StrategyContext& context);

}  // namespace cleave::rules
