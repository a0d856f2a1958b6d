#pragma once
/// What a run of a plan gives: how far its outputs lie from what was expected, and where its ranks did otherwise than
/// the plan says.
#include "launch/launcher.h"
#include "pipeline/generation.h"
#include "pipeline/memory_account.h"
#include "pipeline/replica_sum.h"
#include "pipeline/rounding.h"
#include "pipeline/timeline.h"
#include "plan/plan.h"
#include "program/mesh.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// One output of one rank against what was expected. `rank` is 0, or a rank whose output is not bit for bit rank 0's.
struct OutputDifference {
  std::string name;
  int rank = 0;
  double maxAbs = 0,
         maxRel = 0;       ///< infinite where an element is NaN, or infinite on one side only; JSON writes that as null
  double ofTolerance = 0;  ///< what decides: the most that an element differs, as a part of what is allowed of it
  std::vector<std::int64_t> place;  ///< index of the element that differs most, as a part of what is allowed
  double actual = 0, expected = 0;  ///< there
  double allowed = 0;               ///< there: it may differ by so much
  Rounding rounding;                ///< what is allowed of this tensor; without meaning where rtol and atol decide
  std::int64_t outside = 0;         ///< elements that differ by more than the tolerance, or are finite on one side only
  std::int64_t notANumber = 0;      ///< elements that are NaN on either side: equal to nothing
  std::int64_t positions = 0;       ///< of tokens, where there is a mask to say which are padding
  std::int64_t padding = 0;         ///< of these: left out, their logits mean nothing
  std::int64_t undetermined = 0;    ///< elements of a trained parameter whose gradient is nothing but rounding: allowed
                                    ///< to differ as far as AdamW moves anything
  std::int64_t jumped = 0;          ///< elements beyond the tolerance that are no more, and no farther off, than those
                                    ///< which jump in the unsplit run when its sums are reordered (rounding.h)
  bool within() const { return outside == 0 && notANumber == 0; }
};

/// NotChecked: the ranks ran as planned, and what they computed was compared with nothing.
enum class RunVerdict : std::uint8_t { Failed, Passed, NotChecked };
/// What a run does with a plan, as far as it takes memory.
struct Workload {
  bool isTraining = false;           ///< steps, of a plan for training; else forward passes, of any plan
  int replicas = 1;                  ///< see RunRequest
  const plan::Plan* step = nullptr;  ///< the plan of the steps behind a prompt, on the same weights
};

struct RunReport {
  RunVerdict verdict = RunVerdict::Failed;
  launch::Backend backend = launch::Backend::Gloo;
  std::string precision;             ///< of float32 products on GPUs: "IEEE float32 (TF32 off)"; "" on CPUs
  std::string comparedWith;          ///< "expected.safetensors", "an unsplit run", "" (nothing)
  std::optional<double> rtol, atol;  ///< the user's tolerance, atol + rtol·|expected|; nullopt: rounding.h decides
  graph::DType coarsest = graph::DType::Float32;  ///< in which any of the outputs was computed
  int rulerParts = 0;                             ///< number of parts of the ruler's sums; 0: no ruler was needed
  std::vector<OutputDifference> outputs;
  program::Mesh mesh;                          ///< of the ranks
  ReplicaSum replicaSum;                       ///< of a step that replicas train; of one replica nothing
  program::Training training;                  ///< what was asked for
  std::vector<protocol::TrainingStep> steps;   ///< of rank 0
  std::optional<GenerationReport> generation;  ///< where tokens were asked for, and the run succeeded
  launch::RunOutcome outcome;
  std::vector<std::string> storages;  ///< of one of several shapes, by rank: tells where in memory its parameters lie
  std::map<int, MemoryComparison> memory;  ///< by rank: of the same step
  Timeline timeline;                       ///< of the step that was recorded; empty: of a run that failed
  std::vector<std::string> violations;     ///< what the ranks did otherwise than the plan says, one sentence each
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  ///< the plan's, and what else its model is to be known for
  /// Without generation, whose figures are in `generation`.
  Workload workload() const { return {training.isAsked(), mesh.dp}; }
};

/// What a rank is predicted to hold at most; of several replicas that train also the bucket of gradients that they add
/// up.
std::int64_t predictedMemory(const plan::Plan& plan, const Workload& workload);

/// "tolerance 0.0001 + 0.0001 × the expected value" for a user's; else what rounding allows, and the ruler.
std::string toleranceText(const RunReport& report);

/// Schema "cleave.run/1"; `passed` is true, false, or null where nothing was compared.
std::string toJson(const RunReport& report, const plan::Plan& plan);

}  // namespace cleave::pipeline
