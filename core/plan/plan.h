#pragma once
/// A plan: everything that follows from a solution, ready to run, show and export.
///
///   annotate  solution → layer plans (column / row / vocab, flags as Optimum names them)
///   replace   ATen graph + solution → rank program: the same operators with local shapes, collectives as explicit nodes
///   shard map parameter → what each rank reads from which file
///   predict   memory per rank by category, traffic per collective
///
/// The rank program is a `graph::Graph` whose types are one rank's; all ranks run the same program. Its own operators:
///
/// | operator                                                         | meaning                                                          |
/// |------------------------------------------------------------------|------------------------------------------------------------------|
/// | `cleave::all_reduce(x)`                                           | sum over ranks                                                   |
/// | `cleave::all_gather(x, dim)`                                      | concatenation of the ranks' parts along dim                      |
/// | `cleave::reduce_scatter(x, dim)`                                  | sum over ranks, each keeps its part of dim                       |
/// | `cleave::vocab_embedding(weight, ids, vocab, padding_idx)`         | rows of this rank's vocabulary part; zeros for other ids: a partial sum that all_reduce / reduce_scatter completes |
/// | `cleave::vocab_cross_entropy(logits, target, class_weights, reduction, ignore_index, label_smoothing, vocab)` | loss from logits split on the vocabulary; 3 all-reduces inside (max, sum of exponentials, target logit) |
/// | `cleave::grad_all_reduce(x)`                                      | identity forward, all-reduce of the gradient backward (Megatron's f) |
///
/// A plan is immutable; share it as `std::shared_ptr<const Plan>`.
#include "solve/engine.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cleave::plan {

using graph::Graph;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;
using rules::Placement;

struct LayerPlan {
  std::string name;    ///< module scope, as in the weight names: "model.layers.0.mlp.up_proj"
  graph::LayerKind kind = graph::LayerKind::Linear;
  rules::Strategy strategy = rules::Strategy::Whole;
  std::string axis;    ///< "column", "row", "vocab", "replicated"
  bool gatherOutput = false;
  bool inputIsParallel = false;
  bool sequenceParallel = false;
  std::string weight;  ///< parameter name; empty: none
  NodeId node;         ///< in the ATen graph
  std::string reason;  ///< why this strategy; for a whole layer: why not split, with the numbers
};

/// A collective of the rank program, in execution order.
struct CollectivePlan {
  std::string after;   ///< value of the ATen graph it completes or feeds, "linear_3"
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;  ///< bytes of the whole tensor being reduced, gathered or scattered (not of one rank's part)
  NodeId programNode;      ///< node of the rank program that executes it
};

/// One contiguous-per-row region of a checkpoint tensor: [start, start+length) of dimension `dim`; the whole tensor when dim < 0.
struct Piece {
  std::string tensor;  ///< name in the checkpoint (a tied parameter's canonical name may differ from the parameter's)
  std::string file;    ///< relative to the model folder; empty: not in any checkpoint (to be initialised)
  int dim = -1;
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const Piece&) const = default;
};

struct ParameterPlan {
  std::string name;
  graph::TensorType type;         ///< whole, in the dtype it has in the program
  graph::DType storedDtype = graph::DType::Float32;  ///< in the checkpoint
  Shape localShape;
  Placement placement;
  std::vector<std::vector<Piece>> piecesByRank;  ///< per rank, concatenated along the split dimension in order
};

/// Bytes on one rank, per category, for one step of the program. Every rank holds the same.
struct MemoryPrediction {
  std::int64_t parameters = 0;
  std::int64_t constants = 0;
  std::int64_t inputs = 0;
  std::int64_t peakActivations = 0;   ///< most bytes of live intermediate values at once (views own none)
  NodeId peakNode;                    ///< program node at which that is
  std::int64_t wholeParameters = 0;   ///< of `parameters`: bytes of parameters that every rank holds in full
  std::vector<std::int64_t> liveAfter;  ///< live activation bytes after each program node
  std::int64_t total() const { return parameters + constants + inputs + peakActivations; }
};

/// Where the model came from and with what the graph was captured; enough to repeat it.
struct ModelInfo {
  std::string source;        ///< folder as given by the user
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string modelType;     ///< "llama"
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = 128;
  bool hasMask = false, hasLoss = true;
  std::int64_t logitsToKeep = 0;
  bool hasWeights = false;   ///< a checkpoint is there
};

struct Timings {
  double loadMs = 0, captureMs = 0, decomposeMs = 0, solveMs = 0, annotateMs = 0, replaceMs = 0;
};

struct Plan {
  ModelInfo model;
  int ranks = 1;
  solve::Engine engine = solve::Engine::Reference;
  rules::Menu menu = rules::Menu::Optimum;
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::uint64_t seed = 0;
  std::shared_ptr<const Graph> graph;      ///< the ATen graph
  std::shared_ptr<const solve::Solution> solution;
  std::vector<LayerPlan> layers;           ///< in graph order
  std::shared_ptr<const Graph> program;    ///< the rank program
  std::vector<ValueId> programValueOf;     ///< ATen value → program value that holds it (before any collective its layer's strategy puts behind it); invalid: none
  std::vector<CollectivePlan> collectives;
  std::vector<ParameterPlan> parameters;   ///< in name order
  MemoryPrediction memory;
  solve::SearchStats search;
  Timings timings;
  std::vector<std::string> warnings;       ///< "nothing could be split: ...", "vocabulary stays whole: ..."
};

/// What the checkpoint of a model folder offers, as far as a shard map needs it.
struct CheckpointTensor {
  graph::TensorType type;
  std::string file;  ///< relative to the model folder
};
using Checkpoint = std::map<std::string, CheckpointTensor>;

struct PlanRequest {
  ModelInfo model;
  std::shared_ptr<const solve::Problem> problem;
  std::shared_ptr<const solve::Solution> solution;
  solve::Engine engine = solve::Engine::Reference;
  solve::SearchStats search;
  Checkpoint checkpoint;     ///< empty for a folder with a config alone
  std::uint64_t seed = 0;
  bool gatherOutputs = true; ///< split graph outputs are gathered at the end, so that the user gets whole tensors
};

/// annotate + replace + shard map + predict. BadInput when a checkpoint tensor's shape is not the model's.
Result<Plan> makePlan(const PlanRequest& request);

/// Schema "cleave.plan/1" (the contract of `cleave-cli plan --json`), deterministic but for `timings_ms`.
/// Holds the rank program too, so that `cleave-rank` needs nothing else but the weights.
std::string toJson(const Plan& plan);
/// Reads a plan file again: bounded, versioned, operators only from the known table, pieces inside the model folder.
/// The ATen graph comes back only as far as the file holds it (values with placements; see README of the format in plan_json.cpp).
Result<Plan> planFromJson(std::string_view text);

/// Graphviz text of the ATen graph coloured by placement, grouped by module.
std::string toDot(const Plan& plan);

}  // namespace cleave::plan
