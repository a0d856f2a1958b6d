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
/// is the node of the ATen graph it stands for. On one rank it is the ATen graph itself. Its own operators stand in
/// graph/operators.h.
///
/// A plan is immutable; share it as `std::shared_ptr<const Plan>`.
// clang-format on
#include "formats/safetensors.h"
#include "formats/size_expression.h"
#include "graph/freezing.h"
#include "graph/states.h"
#include "plan/shares.h"
#include "program/backward.h"
#include "program/collectives.h"
#include "program/rank_program.h"
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
  Standing standing;                     ///< of its weight (a loss: of its logits): split, or why not
  std::string reason;                    ///< why this strategy; for a replicated layer: why not split, with the numbers
  std::optional<Femtoseconds> regretFs;  ///< `optimal`: SmallestRegret::extra, where another choice is possible within
                                         ///< the budget
  bool isRegretKnown = true;  ///< `optimal`: false: the search ended before it could tell regretFs and isForcedByBudget
  bool isForcedByBudget = false;  ///< `optimal`: every plan that treats it otherwise needs more than the budget
};

/// A collective of the rank program, in execution order.
struct CollectivePlan {
  std::string after;  ///< value of the ATen graph it completes or feeds, "linear_3"
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;  ///< bytes of the whole tensor being reduced, gathered or scattered (not of one rank's part)
  NodeId programNode;      ///< node of the rank program that executes it
};

/// Bytes on one rank, per category, for one step of the program. Every rank holds the same.
struct MemoryPrediction {
  std::int64_t parameters = 0;
  std::int64_t constants = 0;
  std::int64_t inputs = 0;
  std::int64_t peakActivations = 0;  ///< most bytes of live intermediate values and work space at once (views own none)
  std::int64_t workspaceAtPeak = 0;  ///< of `peakActivations`: buffers of the operator or collective running then
  NodeId peakNode;                   ///< program node at which that is
  std::int64_t replicatedParameters = 0;  ///< of `parameters`: bytes of parameters that every rank holds in full
  std::vector<std::int64_t> liveAfter;    ///< live activation bytes after each program node
  std::int64_t total() const { return parameters + constants + inputs + peakActivations; }
};

/// Where the model came from and with what the graph was captured; enough to repeat it.
struct ModelInfo {
  std::string source;        ///< folder as given by the user, or an exported program's archive
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string modelType;     ///< "llama"
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = 128;
  bool hasMask = false, hasTokenTypes = false, hasLoss = true;
  bool hasDropout = false;  ///< of a folder: that of its training; an exported program has what it was exported with
  std::string dropouts;     ///< of a folder: config.json's probabilities above 0, "attn_pdrop 0.1"; empty: none
  std::int64_t logitsToKeep = 0;
  graph::CacheUse cacheUse = graph::CacheUse::None;  ///< of a prefill or a decode step (graph/states.h)
  std::int64_t cachePositions = 0;                   ///< that the cache has room for; 0: there is none
  bool hasWeights = false;                           ///< a checkpoint is there
  bool isExported = false;     ///< `source` is an archive of torch.export; batch and sequence are then those of its
                               ///< inputs, 0 where they have no such dimension
  formats::SymbolSizes sizes;  ///< of an exported program, by symbol
  std::string weights;         ///< safetensors file or folder beside an exported program; empty: none
  /// "gptq, 4 bit, groups of 128": such a model is planned with the bytes that it is stored in, and not run; empty: it
  /// is not quantized.
  std::string quantization;
  std::vector<std::string> writtenBuffers;  ///< of an exported program: those that a pass changes
  graph::Freezing freezing;  ///< parameters that were asked to keep their values, beside those of `graph.frozen`
};

struct Timings {
  double loadMs = 0, captureMs = 0, decomposeMs = 0, solveMs = 0, annotateMs = 0, replaceMs = 0;
};

/// What a file's seal (seal.h) says. None: an earlier program wrote it, or it was not read from a file.
enum class Seal : std::uint8_t { None, Intact, Broken };

struct Plan {
  std::string madeBy;  ///< version of the program that made it, "0.1.0"; empty: a file that does not say
  Seal seal = Seal::None;
  ModelInfo model;
  int ranks = 1;
  solve::Engine engine = solve::Engine::Reference;  ///< whose answer the plan is
  rules::CandidateSet candidateSet = rules::CandidateSet::Optimum;
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::uint64_t seed = 0;
  std::shared_ptr<const Graph> graph;  ///< the ATen graph
  std::shared_ptr<const solve::Solution> solution;
  std::vector<std::string> origins;      ///< by ATen value: the captured operator it comes from, "layer_norm_0"; "":
                                         ///< unknown
  std::vector<LayerPlan> layers;         ///< in graph order
  std::shared_ptr<const Graph> program;  ///< the rank program
  std::vector<ValueId> programValueOf;  ///< ATen value → program value that holds it as the solution places it (after
                                        ///< its layer's collectives)
  std::vector<CollectivePlan> collectives;  ///< of a forward pass
  /// Of a plan for training whose program has a loss: how gradients lie, and the collectives of a backward pass. Null:
  /// it cannot be trained.
  std::shared_ptr<const program::Backward> backward;
  std::vector<std::string> checkpointed;  ///< blocks that run again before their backward pass, by module
  ShardMap parameters;
  MemoryPrediction memory;
  solve::CostSettings costSettings;  ///< the device and use that `cost` is for
  solve::PlanCost cost;              ///< predicted time of a step and bytes of a rank
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
  std::optional<Fastest> fastest;    ///< `optimal`: the fastest plan within the budget; this one unless the slack gives
                                     ///< one that holds less
  Shares shares;                     ///< how much of the work and of the weights the ranks divide
  std::vector<std::string> demands;  ///< the user's: pins, "rule off: …", "redistribute: …"
  solve::SearchStats search;
  Timings timings;
  std::vector<std::string> warnings;  ///< "nothing could be split: ...", "vocabulary stays replicated: ..."
};

struct PlanRequest {
  ModelInfo model;
  std::shared_ptr<const solve::Problem> problem;
  std::shared_ptr<const Graph> captured;  ///< for Plan::origins; may be null
  std::shared_ptr<const solve::Solution> solution;
  solve::Engine engine = solve::Engine::Reference;
  solve::SearchStats search;
  std::shared_ptr<const solve::Optimum> optimum;  ///< of the engine `optimal`, whose plan `solution` is; null: another
                                                  ///< engine
  formats::WeightSources checkpoint;              ///< empty for a folder with a config alone
  std::uint64_t seed = 0;
  bool gatherOutputs = true;  ///< split graph outputs are gathered at the end, so that the user gets whole tensors
};

/// annotate + replace + shard map + predict. BadInput when a checkpoint tensor's shape is not the model's. Fills
/// timings.annotateMs and replaceMs; the caller fills the rest. Why layers are replicated is found out by solving
/// again, which may take longer than the solution did.
Result<Plan> makePlan(const PlanRequest& request, const Progress& progress = {});

/// By node of the ATen graph: what it costs on one rank, its collectives included.
std::vector<solve::StepCost> costByNode(const Plan& plan);

/// What one rank holds that runs the whole model: the program on one rank is the ATen graph itself.
MemoryPrediction unsplitMemory(const Plan& plan);

/// Layers whose weights stay replicated because that costs less, a sentence for equal ones; what else stays replicated
/// is a warning.
std::vector<std::string> replicatedByChoice(const Plan& plan);

/// Collectives by kind: how many, and bytes of the whole tensors.
struct Traffic {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  bool operator==(const Traffic&) const = default;
};
std::map<rules::CollectiveKind, Traffic> trafficByKind(const std::vector<CollectivePlan>& collectives);

/// Schema "cleave.plan/1" (the contract of `cleave-cli plan --json`), deterministic but for `timings_ms`.
/// Holds the rank program too, so that `cleave-rank` needs nothing else but the weights.
std::string toJson(const Plan& plan);
/// The same with its seal: for files that users keep.
std::string toSealedJson(const Plan& plan);
/// Reads a plan file again (layout: plan_json.cpp). Foreign input: bounded and versioned; the rank program as
/// program::rankProgramFromJson checks it; collectives and types as the program has them. The memory prediction is
/// computed again.
Result<Plan> planFromJson(std::string_view text);
/// The same of a file; errors name it.
Result<Plan> readPlanFile(const fs::path& file);

/// Why `optimal` chose this plan, by time and memory: "the fastest of all plans", "holds least for the whole step of
/// all plans within 1 % of the fastest that need no more in all; the fastest takes …"; with what is not proved. Empty
/// for another engine.
std::string choiceInWords(const Plan& plan);
/// "proved": no plan (within the budget) is faster than the fastest that was found; else "within 0.8 % of the fastest
/// there can be", or "not proved" where nothing is known. Empty for another engine.
std::string proofInWords(const Plan& plan);

/// Graphviz text of the ATen graph coloured by placement, grouped by module.
std::string toDot(const Plan& plan);

}  // namespace cleave::plan
