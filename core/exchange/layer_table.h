#pragma once
/// The layers of a plan as libraries that split modules see them: the one description that all formats read.
///
/// Libraries hook modules. They know how a layer's weight is split, and whether its input and output are replicated or
/// split. The code between two layers is the model's own, and it computes with a part as with the whole. So values that
/// stay split between layers are grouped into *regions*: the heads of one attention with q, k and v before and o after
/// them, the features of one MLP. A region is split as a whole or not at all. A reason why a library cannot split a
/// region is an *obstacle*.
///
///     const LayerTable table = layerTable(plan);
///     table.layers[1];   // model.layers.0.self_attn.q_proj, column, output = 0
///     table.regions[0];  // producers q, k, v; consumers o; hasAttention
#include "graph/attention.h"
#include "plan/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::exchange {

/// How a weight is split over the ranks, as far as formats distinguish it.
enum class Cut : std::uint8_t {
  Whole,
  Even,    ///< one dimension, equal contiguous parts
  Uneven,  ///< the same, padded to divide: the last ranks have less
  Blocks,  ///< an equal part of each block of a fused weight
  Copied,  ///< fewer parts than ranks: neighbouring ranks have the same part (KV heads)
};

struct Layer {
  std::string name;  ///< module path, as in the weight's name
  graph::NodeId node;
  graph::LayerKind kind = graph::LayerKind::Linear;
  rules::Strategy strategy = rules::Strategy::Replicated;  ///< the effective strategy on these ranks
  std::string weight;                                      ///< parameter; empty: a loss without a weight
  graph::Shape shape, localShape;                          ///< shapes of the weight
  rules::Placement placement;                              ///< placement of the weight
  Cut cut = Cut::Whole;
  bool isTransposed = false;  ///< for Linear: the weight is [in, out], as in transformers' Conv1D
  bool isInTurn = false;      ///< for Experts: gate and up are interleaved
  bool isPrepared = false;    ///< its weight is computed from the parameter by more than a cast
  bool hasBias = false;
  bool isHead = false;                       ///< the only layer from whose result the model's output or loss is
                                             ///< computed
  bool isRouter = false;                     ///< for Linear: it selects among the experts beside it
  std::optional<std::size_t> input, output;  ///< the region that it reads or writes; nullopt: a replicated value
  bool readsSequence = false, writesSequence = false;  ///< each rank has its part of the positions
};

struct Region {
  std::vector<std::size_t> producers, consumers;  ///< indices into `layers`
  std::vector<std::string> replicatedModules;     ///< modules with replicated parameters that each rank uses on its
                                                  ///< part: norms of heads
  bool hasAttention = false;
  graph::Heads heads;       ///< of the whole attention if one operator computes it; else undefined
  std::string sharedHeads;  ///< a clause if ranks share KV heads: "1 KV head does not divide by 2 ranks"
  bool reachesLoss = false, reachesOutput = false;
  std::vector<std::string> obstacles;  ///< clauses that hold for every library: "alibi_0 is split, but belongs to no
                                       ///< layer"
};

struct LayerTable {
  int ranks = 1;
  std::string modelType;
  std::vector<Layer> layers;                 ///< in graph order, each module once
  std::vector<Region> regions;               ///< groups of values that are split by features or heads
  bool usesSequence = false;                 ///< parts of the plan compute on parts of the sequence
  std::vector<std::string> sequenceModules;  ///< modules with replicated parameters that each rank uses on its
                                             ///< positions: norms
  bool hasLoss = false, splitsLoss = false;
};

LayerTable layerTable(const plan::Plan& plan);

/// BadInput if a module's name is not valid in Python code: a plan file may contain any text.
Result<void> checkNames(const LayerTable& table);

}  // namespace cleave::exchange
