#pragma once
/// The result of a run: the differences of its outputs from the expected ones, and of its ranks from the plan.
///
/// This room has the results of a run, and writes them as text and JSON. The rooms above it start the ranks.
#include "graph/graph.h"
#include "launch/launcher.h"
#include "pipeline/compare/output_difference.h"
#include "pipeline/memory/workload.h"
#include "pipeline/report/generation_report.h"
#include "pipeline/report/memory_account.h"
#include "pipeline/report/replica_sum.h"
#include "pipeline/report/timeline.h"
#include "program/mesh.h"
#include "spec/run/run_spec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// NotChecked: the ranks ran as planned, and their outputs were not compared.
enum class RunVerdict : std::uint8_t { Failed, Passed, NotChecked };

struct RunReport {
  RunVerdict verdict = RunVerdict::Failed;
  /// What was asked for. `backend` is the one that ran; if either of `rtol` and `atol` was set, both are.
  spec::RunSpec spec;
  std::string precision;     ///< mode of float32 products on GPUs: "IEEE float32 (TF32 off)"; empty on CPUs
  std::string comparedWith;  ///< "expected.safetensors" or "an unsplit run"; empty without a comparison
  graph::DType coarsest = graph::DType::Float32;  ///< coarsest type in the computation
  int rulerParts = 0;                             ///< number of parts of the ruler's sums; 0: no ruler was needed
  std::vector<OutputDifference> outputs;
  program::Mesh mesh;                          ///< mesh of the ranks
  ReplicaSum replicaSum;                       ///< sums over replicas in a training step; empty for one replica
  std::vector<protocol::TrainingStep> steps;   ///< training steps of rank 0
  std::optional<GenerationReport> generation;  ///< nullopt: the run did not generate, or it failed
  launch::RunOutcome outcome;
  std::vector<std::string> storages;  ///< by rank: digest of its parameters' addresses; only for one of several shapes
  std::map<int, MemoryComparison> memory;  ///< by rank, for the recorded step
  Timeline timeline;                       ///< the recorded step; empty if the run failed
  std::vector<std::string> violations;     ///< deviations of the ranks from the plan, one sentence each
  std::vector<std::string> notes;
  std::vector<std::string> warnings;  ///< warnings about the plan and its model
  /// The workload without generation, whose figures are in `generation`.
  Workload workload() const { return {spec.training.isAsked(), mesh.dp}; }
};

}  // namespace cleave::pipeline
