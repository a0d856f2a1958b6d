#pragma once
// clang-format off
/// A plan: everything that follows from a solution, ready to run, show and export.
///
///   annotate  solution → layer plans (column / row / vocab, flags as Optimum names them)
///   replace   ATen graph + solution → rank program: the same operators with local shapes, collectives as explicit
///             nodes
///   shard map parameter → what each rank reads from which file
///   predict   memory per rank by category, traffic per collective
///
/// The rank program is a `graph::Graph` whose types are one rank's; all ranks run the same program. A node's `origin`
/// is the node of the ATen graph it stands for. On one rank, the program is the ATen graph. Cleave's own
/// operators are in graph/operators.h.
///
/// A plan is immutable; share it as `std::shared_ptr<const Plan>`.
// clang-format on
#include "formats/safetensors.h"
#include "plan/shares.h"
#include "program/backward.h"
#include "program/collectives.h"
#include "program/rank_program.h"
#include "solve/engine.h"
#include "spec/input/input_spec.h"
#include "spec/plan/plan_spec.h"

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
using program::ParameterShards;
using program::ShardMap;
using program::ShardPiece;
using rules::Placement;

struct LayerPlan {
  std::string name;  ///< module scope, as in the weight names: "model.layers.0.mlp.up_proj"
  graph::LayerKind kind = graph::LayerKind::Linear;
  rules::Strategy strategy = rules::Strategy::Replicated;
  std::string axis;  ///< "column", "row", "vocab", "expert", "replicated"
  bool gatherOutput = false;
  bool inputIsParallel = false;
  bool sequenceParallel = false;
  std::string weight;                    ///< parameter name; empty: none
  NodeId node;                           ///< in the ATen graph
  ReplicationReason replication;         ///< reason for its weight (for a loss: its logits); Split if it is split
  std::string reason;                    ///< why this strategy; for a replicated layer: why not split, with the numbers
  std::optional<Femtoseconds> regretFs;  ///< `optimal`: SmallestRegret::extra, where another choice is possible within
                                         ///< the budget
  bool isRegretKnown = true;             ///< `optimal`: false: the search stopped before it knew the two fields
  bool isForcedByBudget = false;         ///< `optimal`: every plan with another strategy is over the budget
};

/// A collective of the rank program, in execution order.
struct CollectivePlan {
  std::string after;  ///< value of the ATen graph it completes or feeds, "linear_3"
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;  ///< bytes of the whole tensor being reduced, gathered or scattered (not of one rank's part)
  NodeId programNode;      ///< node of the rank program that executes it
};

/// Bytes per rank and category for one step of the program. All ranks need the same.
struct MemoryPrediction {
  std::int64_t parameters = 0;
  std::int64_t constants = 0;
  std::int64_t inputs = 0;
  std::int64_t peakActivations = 0;  ///< most bytes of live intermediate values and work space at once (views own none)
  std::int64_t workspaceAtPeak = 0;  ///< of `peakActivations`: buffers of the operator or collective running then
  NodeId peakNode;                   ///< program node at which that is
  std::int64_t replicatedParameters = 0;  ///< of `parameters`: bytes of replicated parameters
  std::vector<std::int64_t> liveAfter;    ///< live activation bytes after each program node
  std::int64_t total() const { return parameters + constants + inputs + peakActivations; }
};

/// The source of the model and the inputs of its capture: enough to capture the same graph again.
struct ModelInfo {
  std::string source;        ///< folder as given by the user, or an exported program's archive
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string modelType;     ///< "llama"
  /// The inputs of the capture, settled: a folder's sizes and element type, and an exported program's symbols, are set.
  spec::InputSpec input;
  // As captured. For a folder the values of `input`; for an exported program those of its inputs, 0 if the inputs have
  // no such dimension.
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = spec::kDefaultSequence;
  std::string dropouts;     ///< folders: probabilities above 0 in config.json, "attn_pdrop 0.1"; may be empty
  bool hasWeights = false;  ///< a checkpoint is there
  bool isExported = false;  ///< `source` is an archive of torch.export
  /// "gptq, 4 bit, groups of 128": a quantized model is planned with its stored bytes, and cannot run. Empty if the
  /// model is not quantized.
  std::string quantization;
  std::vector<std::string> writtenBuffers;  ///< exported programs: buffers that a pass changes
  /// For a folder: sets the sizes of its inputs.
  void setShape(std::int64_t rows, std::int64_t positions) {
    input.batch = batch = rows;
    input.sequence = sequence = positions;
  }
  /// The graph has labels and a loss of Cleave's.
  bool hasLoss() const { return input.loss && !isExported; }
};

struct Timings {
  double loadMs = 0, captureMs = 0, decomposeMs = 0, solveMs = 0, annotateMs = 0, replaceMs = 0;
};

/// State of a file's seal (file/seal.h). None: written by an early version, or not read from a file.
enum class Seal : std::uint8_t { None, Intact, Broken };

struct Plan {
  std::string madeBy;  ///< version of the program that made it, "0.1.0"; empty if the file does not name it
  Seal seal = Seal::None;
  ModelInfo model;
  /// What the plan answers: its candidate set is set, and its engine is the one that found the plan.
  spec::PlanSpec spec{.ranks = 1, .engine = solve::Engine::Reference};
  std::shared_ptr<const Graph> graph;  ///< the ATen graph
  std::shared_ptr<const solve::Solution> solution;
  std::vector<std::string> origins;      ///< by ATen value: the captured operator it comes from, "layer_norm_0"; "":
                                         ///< unknown
  std::vector<LayerPlan> layers;         ///< in graph order
  std::shared_ptr<const Graph> program;  ///< the rank program
  std::vector<ValueId> programValueOf;  ///< ATen value → program value that holds it as the solution places it (after
                                        ///< its layer's collectives)
  std::vector<CollectivePlan> collectives;  ///< of a forward pass
  /// For a plan for training whose program has a loss: placements of gradients, and collectives of the backward pass.
  /// Null if the plan cannot be trained.
  std::shared_ptr<const program::Backward> backward;
  std::vector<std::string> checkpointed;  ///< blocks that run again before their backward pass, by module
  ShardMap parameters;
  MemoryPrediction memory;
  solve::PlanCost cost;  ///< predicted time of a step and bytes of a rank, for `spec.cost`
  /// No plan of this candidate set within the budget is faster than `fastest`, and none that the slack admits holds
  /// less than this one.
  bool isProvedOptimal = false;
  std::optional<Femtoseconds> lowerBoundFs;  ///< `optimal`: no plan is faster than this, proved or not
  /// `optimal`: proves lowerBoundFs, or a lower one; null: of another engine, or the search left out states for want of
  /// room.
  std::shared_ptr<const solve::Certificate> certificate;
  struct Fastest {
    Femtoseconds femtoseconds;
    std::int64_t bytes = 0;  ///< of a rank, as PlanCost::bytes
  };
  std::optional<Fastest> fastest;  ///< `optimal`: the fastest plan within the budget; this one unless the slack gives
                                   ///< one that holds less
  Shares shares;                   ///< how much of the work and of the weights the ranks divide
  solve::SearchStats search;
  Timings timings;
  std::vector<std::string> warnings;  ///< "nothing could be split: ...", "vocabulary stays replicated: ..."
};

/// Collectives by kind: how many, and bytes of the whole tensors.
struct Traffic {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  bool operator==(const Traffic&) const = default;
};
std::map<rules::CollectiveKind, Traffic> trafficByKind(const std::vector<CollectivePlan>& collectives);

}  // namespace cleave::plan
