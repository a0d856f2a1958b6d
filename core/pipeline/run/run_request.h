#pragma once
/// The request for a run of a plan.
#include "launch/launcher.h"
#include "launch/listener.h"
#include "pipeline/memory/workload.h"
#include "plan/plan.h"
#include "program/generation.h"
#include "program/mesh.h"
#include "program/training.h"

#include <chrono>
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

struct RunRequest {
  std::shared_ptr<const plan::Plan> plan;
  int replicas = 1;  ///< data parallelism: number of copies of the plan's ranks, each with its rows (program/mesh.h)
  launch::Backend backend = launch::Backend::Auto;
  std::optional<std::filesystem::path> input, expect, output;
  std::optional<double> rtol, atol;  ///< a missing one is 0; nullopt both: by rounding (rounding.h)
  program::Training training;        ///< training steps instead of one forward pass, with the plan's optimizer
  /// Tokens after the prompt in `input` instead of one forward pass; `plan` is for this prompt. See generation.h.
  program::Generation generation;
  std::shared_ptr<const plan::Plan> step;         ///< plan of a decode step; null: the run does not generate
  bool skipWeights = false, initMissing = false;  ///< see cleave-rank and folder_check.h
  bool recordsTimes = true;    ///< RunReport::timeline: a forward pass runs twice, warm the second time
  bool compareUnsplit = true;  ///< without `expect`: compare with the unsplit program in one process
  bool ignoreMemory = false;   ///< start even if `checkMemory` or `checkUnsplitMemory` finds too little memory
  std::chrono::milliseconds silence = launch::kSilence;   ///< a rank that is silent for longer has failed
  std::optional<std::chrono::seconds> collectiveTimeout;  ///< nullopt: the default of cleave-rank
  std::filesystem::path rankProgram;                      ///< empty: the one installed with this program
  std::optional<RemoteRanks> remote;  ///< the user starts the split run's ranks; requires a `backend` other than Auto
  Workload workload() const { return {training.isAsked(), replicas, step.get()}; }
  program::Mesh mesh() const { return {.dp = replicas, .tp = plan->ranks}; }
  bool wantsOutputs() const { return output || expect || compareUnsplit; }
  bool comparesUnsplit() const { return compareUnsplit && !expect; }
  bool readsWeights() const { return !skipWeights && (plan->model.hasWeights || !initMissing); }
  bool expectHasInputs = true;  ///< false: `expect` has only results of training, and inputs are random
  /// The file with the inputs; nullopt: inputs are random.
  std::optional<std::filesystem::path> inputFile() const { return input || !expectHasInputs ? input : expect; }
};

}  // namespace cleave::pipeline
