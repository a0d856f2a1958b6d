#pragma once
/// The last stage: the ranks of a plan run on this machine, and what they computed is compared.
#include "launch/launcher.h"
#include "pipeline/report.h"
#include "plan/plan.h"

#include <filesystem>
#include <optional>
#include <string>

namespace cleave::pipeline {

struct RunRequest {
  std::shared_ptr<const plan::Plan> plan;
  launch::Backend backend = launch::Backend::Auto;
  std::optional<std::filesystem::path> input, expect, output;
  double rtol = 1e-4, atol = 1e-4;
  bool skipWeights = false, initMissing = false;  ///< see cleave-rank and folder_check.h
  bool compareUnsplit = true;  ///< without `expect`: against a run of the unsplit program in one process
  bool ignoreMemory = false;   ///< start although `checkMemory` or `checkUnsplitMemory` says that it does not fit
  std::filesystem::path rankProgram;  ///< empty: the one installed with this program
  bool comparesUnsplit() const { return compareUnsplit && !expect; }
  bool readsWeights() const { return !skipWeights && (plan->model.hasWeights || !initMissing); }
};

/// Whether the local ranks of a plan find the memory that their processes take: what is predicted of the program, and
/// LibTorch's own.
struct MemoryCheck {
  std::int64_t needed = 0;                ///< of all processes on CPUs; of one on its GPU
  std::optional<std::int64_t> available;  ///< nullopt: not known
  std::string text;                       ///< both in one sentence
  bool fits() const { return !available || needed <= *available; }
};
/// `backend`: Gloo or Nccl. CPU ranks share the machine's memory (or the container's), ranks on GPUs have one each.
MemoryCheck checkMemory(const plan::Plan& plan, launch::Backend backend);
/// The same for the run that the ranks are compared with, when they have ended: one process on CPUs that holds the
/// model whole.
MemoryCheck checkUnsplitMemory(const plan::Plan& plan);

/// Absolute and relative tolerance of a comparison in this element type on CPUs: float32 1e-4, float16 1e-2, bfloat16
/// 6e-2 (8 bits of mantissa, and sums in another order), float64 1e-8.
double defaultTolerance(graph::DType dtype);

/// Starts the ranks (and, where asked, the unsplit run), waits, compares: outputs with what is expected, and what each
/// rank read, allocated and sent with the plan. `observer` sees every event of the split run. Environment when the
/// ranks, or the unsplit run, do not fit into memory; BadInput when `expect` has no or another output, `checkFolder`
/// does not hold, or the folder holds another model than the plan's: all before any rank starts.
Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress = {});

}  // namespace cleave::pipeline
