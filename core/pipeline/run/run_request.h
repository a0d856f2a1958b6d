#pragma once
/// The request for a run of a plan.
#include "launch/listener.h"
#include "pipeline/memory/workload.h"
#include "plan/plan.h"
#include "program/mesh.h"
#include "spec/run/run_spec.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cleave::pipeline {

/// Ranks that the user starts with the commands of `clusterText` (cluster.h).
struct RemoteRanks {
  launch::Listener* listener = nullptr;
  int joinMs = 60'000;                                  ///< see FollowRequest
  std::function<void(const std::string&)> notice = {};  ///< see FollowRequest
};

/// A run spec with its plan.
struct RunRequest : spec::RunSpec {
  std::shared_ptr<const plan::Plan> plan;  ///< in a generation, of the prompt (generation.h)
  std::shared_ptr<const plan::Plan> step;  ///< plan of a decode step; null: the run does not generate
  std::filesystem::path rankProgram;       ///< empty: the one installed with this program
  std::optional<RemoteRanks> remote;  ///< the user starts the split run's ranks; requires a `backend` other than Auto
  bool expectHasInputs = true;        ///< false: `expect` has only results of training, and inputs are random
  Workload workload() const { return {training.isAsked(), replicas, step.get()}; }
  program::Mesh mesh() const { return {.dp = replicas, .tp = plan->spec.ranks}; }
  bool readsWeights() const { return !skipWeights && (plan->model.hasWeights || !initMissing); }
  /// The file with the inputs; nullopt: inputs are random.
  std::optional<std::filesystem::path> inputFile() const { return input || !expectHasInputs ? input : expect; }
};

}  // namespace cleave::pipeline
