#pragma once
/// The last stage: the ranks of a plan run on this machine, or report to it, and what they computed is compared.
#include "launch/launcher.h"
#include "launch/listener.h"
#include "pipeline/report.h"
#include "plan/plan.h"
#include "program/mesh.h"

#include <filesystem>
#include <optional>
#include <string>

namespace cleave::pipeline {

/// Ranks that somebody else starts, with what `clusterText` says (cluster.h).
struct Attended {
  launch::Listener* listener = nullptr;
  int joinMs = 60'000;                                  ///< see AttendRequest
  std::function<void(const std::string&)> notice = {};  ///< the same
};

struct RunRequest {
  std::shared_ptr<const plan::Plan> plan;
  int replicas = 1;  ///< data parallelism: the plan's ranks so many times over, each on its rows (program/mesh.h)
  launch::Backend backend = launch::Backend::Auto;
  std::optional<std::filesystem::path> input, expect, output;
  std::optional<double> rtol, atol;  ///< one that is missing is 0; nullopt both: by rounding (rounding.h)
  program::Training training;        ///< steps instead of one forward pass; the plan's optimizer
  /// Tokens behind `input`, a prompt that `plan` is for, instead of one forward pass: see generation.h.
  program::Generation generation;
  std::shared_ptr<const plan::Plan> step;         ///< of a step behind the prompt; null: nothing is generated
  bool skipWeights = false, initMissing = false;  ///< see cleave-rank and folder_check.h
  bool recordsTimes = true;    ///< RunReport::timeline: a forward pass runs twice, warm the second time
  bool compareUnsplit = true;  ///< without `expect`: against a run of the unsplit program in one process
  bool ignoreMemory = false;   ///< start although `checkMemory` or `checkUnsplitMemory` says that it does not fit
  std::chrono::milliseconds silence = launch::kSilence;   ///< a rank that says nothing for so long has failed
  std::optional<std::chrono::seconds> collectiveTimeout;  ///< nullopt: cleave-rank's own
  std::filesystem::path rankProgram;                      ///< empty: the one installed with this program
  std::optional<Attended> attended;  ///< the split run's ranks are not started here; `backend` is not Auto then
  Workload workload() const { return {training.isAsked(), replicas, step.get()}; }
  program::Mesh mesh() const { return {.dp = replicas, .tp = plan->ranks}; }
  bool wantsOutputs() const { return output || expect || compareUnsplit; }
  bool comparesUnsplit() const { return compareUnsplit && !expect; }
  bool readsWeights() const { return !skipWeights && (plan->model.hasWeights || !initMissing); }
  bool expectHasInputs = true;  ///< what training leads to may be expected of made-up inputs
  /// Where without one inputs are made up.
  std::optional<std::filesystem::path> inputFile() const { return input || !expectHasInputs ? input : expect; }
};
/// What every rank is told on its command line beside plan, backend and files to write.
std::vector<std::string> rankArguments(const RunRequest& request);

/// Whether the local ranks of a plan find the memory that their processes take: what is predicted of the program, and
/// LibTorch's own.
struct MemoryCheck {
  std::int64_t needed = 0;                ///< of all processes on CPUs; of one on its GPU
  std::optional<std::int64_t> available;  ///< nullopt: not known
  std::string text;                       ///< both in one sentence
  bool fits() const { return !available || needed <= *available; }
};
/// `backend`: Gloo or Nccl. CPU ranks share the machine's memory (or the container's), ranks on GPUs have one each, as
/// free as launch::lastGpuProbe found it.
MemoryCheck checkMemory(const plan::Plan& plan, launch::Backend backend, const Workload& workload = {});
/// Bytes that a rank needs on its GPU beyond its CUDA context: the program, and what CUDA's libraries and NCCL take.
std::int64_t gpuBytes(const plan::Plan& plan, const Workload& workload = {});
/// What the ranks of this request communicate over here; see launch::chooseBackend.
Result<launch::BackendChoice> backendFor(const RunRequest& request, const Progress& progress);
/// The same for the run that the ranks are compared with, when they have ended: one process on CPUs that holds the
/// model whole, and computes the rows of all replicas.
MemoryCheck checkUnsplitMemory(const plan::Plan& plan, const Workload& workload = {});

/// Starts the ranks, or waits for them (and, where asked, starts the unsplit run), waits, compares: outputs with what
/// is expected, and what each rank read, allocated and sent with the plan. Of training the outputs are the losses of
/// all steps, and all parameters after them; `expect` may have any of these. Of generation they are the tokens.
/// `observer` sees every event of the split run. Environment when the ranks, or the unsplit run, do not fit into
/// memory; BadInput when `expect` has no or another output, `checkFolder` does not hold, or the folder holds another
/// model than the plan's: all before any rank starts.
Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress = {});

}  // namespace cleave::pipeline
