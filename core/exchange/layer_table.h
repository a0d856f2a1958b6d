#pragma once
/// What a plan says of each layer, in the terms of libraries that split modules: the one description that all formats
/// read.
///
/// Libraries hook modules. They know what a layer's weight is cut into, and whether what comes in and goes out is whole
/// or split; what lies between two layers is the model's own code, which computes with a part as with the whole. So the
/// values that are split between layers are gathered into *regions*: the heads of one attention with q, k and v in
/// front and o behind, the features of one MLP. A region is split as a whole or not at all. What keeps a library from
/// splitting one is an *obstacle*.
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

/// How a weight lies across the ranks, as far as formats tell it apart.
enum class Cut : std::uint8_t {
  Whole,
  Even,    ///< one dimension, equal neighbouring parts
  Uneven,  ///< the same, padded to divide: the last ranks have less
  Blocks,  ///< of a fused weight: an equal part of each block
  Copied,  ///< fewer parts than ranks: neighbours hold the same (KV heads)
};

struct Layer {
  std::string name;  ///< module path, as in the weight's name
  graph::NodeId node;
  graph::LayerKind kind = graph::LayerKind::Linear;
  rules::Strategy strategy = rules::Strategy::Replicated;  ///< as it comes to on these ranks
  std::string weight;                                      ///< parameter; empty: a loss without one
  graph::Shape shape, localShape;                          ///< of the weight
  rules::Placement placement;                              ///< of the weight
  Cut cut = Cut::Whole;
  bool isTransposed = false;  ///< of Linear: the weight lies [in, out], as in transformers' Conv1D
  bool isInTurn = false;      ///< of Experts: gate and up lie in turn
  bool isPrepared = false;    ///< its weight is computed from the parameter, by more than a cast
  bool hasBias = false;
  bool isHead = false;                       ///< the one layer from whose result the model's output or loss is computed
  bool isRouter = false;                     ///< of Linear: beside experts, it chooses among them
  std::optional<std::size_t> input, output;  ///< the region that it reads or writes; nullopt: whole
  bool readsSequence = false, writesSequence = false;  ///< each rank has its part of the positions
};

struct Region {
  std::vector<std::size_t> producers, consumers;  ///< layers
  std::vector<std::string> replicatedModules;     ///< whose parameters every rank has whole and uses on its part: norms
                                                  ///< of heads
  bool hasAttention = false;
  graph::Heads heads;       ///< of the whole attention, where one operator computes it; else of no meaning
  std::string sharedHeads;  ///< a clause where ranks share KV heads: "1 KV head does not divide by 2 ranks"
  bool reachesLoss = false, reachesOutput = false;
  std::vector<std::string> obstacles;  ///< whatever the library: clauses, "alibi_0 is split, and no layer makes it"
};

struct LayerTable {
  int ranks = 1;
  std::string modelType;
  std::vector<Layer> layers;                 ///< in graph order, each module once
  std::vector<Region> regions;               ///< of values that are split by features or heads
  bool usesSequence = false;                 ///< parts of the plan compute on parts of the sequence
  std::vector<std::string> sequenceModules;  ///< whose parameters every rank has whole and uses on its positions: norms
  bool hasLoss = false, splitsLoss = false;
};

LayerTable layerTable(const plan::Plan& plan);

/// BadInput where a module's name is none that Python code can be written with: a plan file may hold any text.
Result<void> checkNames(const LayerTable& table);

}  // namespace cleave::exchange
