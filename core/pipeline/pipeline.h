#pragma once
/// The whole way from a model source to a plan, and from a plan to a run: what the window, the command line and the
/// tests call. Free of LibTorch and Qt in this header.
///
/// Each stage is one function over immutable values; results are shared as `shared_ptr<const T>`. Blocking: run it off
/// the GUI thread; stop it with the progress's token. A failure leaves nothing behind.
///
///     CLEAVE_TRY(auto model, openModel("models/llama", {}, progress));
///     CLEAVE_TRY(auto solved, solveModel(model, {.ranks = 2}, progress));
///     CLEAVE_TRY(auto plan, planModel(model, solved));
#include "formats/model_folder.h"
#include "launch/launcher.h"
#include "libtorch/capture/capture.h"
#include "plan/plan.h"
#include "solve/trace/cursor.h"
#include "solve/trace/recorder.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct Model {
  plan::ModelInfo info;
  formats::ModelFolder folder;
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<const graph::Graph> aten;
  plan::Timings timings;
};

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const torch_capture::CaptureOptions& options,
                                               const Progress& progress = {});
/// The same model with other options, from what was read when it was opened. BadInput for a graph that came alone, with
/// a plan or a recording.
Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress = {});

/// More ranks than any tensor-parallel group that exists; predictions cover 1-64.
inline constexpr int kMaxRanks = 1024;

/// `optimum` for the reference engine, `full` for the others.
rules::Menu defaultMenu(solve::Engine engine);

/// The bundled profiles (resources/devices/*.json) by name; the first is the default.
Result<std::vector<solve::DeviceProfile>> deviceProfiles();
/// A bundled profile by name, or by path one from a JSON file, or that of a plan (whose maker may have had profiles
/// that are not here). BadInput lists the names there are.
Result<solve::DeviceProfile> deviceProfile(const std::string& nameOrFile);
inline constexpr std::string_view kDefaultDevice = "h100";

struct SolveOptions {
  int ranks = 2;
  solve::Engine engine = solve::Engine::Optimal;
  std::optional<rules::Menu> menu;  ///< nullopt: the engine's default
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::vector<solve::Pin> pins;
  std::vector<std::string> rulesOff, redistributable;  ///< see solve::Problem
  solve::CostSettings cost;                            ///< its profile from `deviceProfile`
  std::shared_ptr<solve::SolveCache> cache;            ///< kept between solves of one model; may be null
  std::uint64_t seed = 0;
  bool record = true;  ///< keep a trace
  solve::RecorderLimits limits;
  /// Called on the solving thread as soon as the recording exists, so that a view can look at it while it grows.
  std::function<void(std::shared_ptr<const solve::Trace>)> onTrace;
};

struct Solved {
  std::shared_ptr<const solve::Problem> problem;
  solve::SolveResult result;
  std::shared_ptr<const solve::Trace> trace;  ///< null without `record`
  std::string whyStopped;                     ///< when the recording ended the search: its limit, or its file
  double solveMs = 0;
  SolveOptions options;
};

Result<std::shared_ptr<const Solved>> solveModel(const std::shared_ptr<const Model>& model, const SolveOptions& options,
                                                 const Progress& progress = {});

/// Negative when there is no solution; the error names the causes.
Result<std::shared_ptr<const plan::Plan>> planModel(const std::shared_ptr<const Model>& model,
                                                    const std::shared_ptr<const Solved>& solved);

/// The problem that these options make of a model; what solveModel solves.
Result<std::shared_ptr<const solve::Problem>> problemOf(const Model& model, const SolveOptions& options);

/// One bundled sample: a model with the options that make it instructive.
struct Sample {
  std::string name;     ///< "one-kv-head"
  std::string title;    ///< "One KV head on 2 ranks"
  std::string lookFor;  ///< one sentence on what to look for
  std::filesystem::path model;
  torch_capture::CaptureOptions capture;
  SolveOptions solve;
};
/// From resources/samples/samples.json; BadInput names the field.
Result<std::vector<Sample>> bundledSamples();
/// The resources folder: CLEAVE_RESOURCES, beside the program, or the source tree's.
std::filesystem::path resourcesFolder();

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
};

/// One output of one rank against what was expected. `rank` is 0, or a rank whose output is not bit for bit rank 0's.
struct OutputDifference {
  std::string name;
  int rank = 0;
  double maxAbs = 0,
         maxRel = 0;       ///< infinite where an element is NaN, or infinite on one side only; JSON writes that as null
  double ofTolerance = 0;  ///< what decides: the most that an element differs, as a part of what is allowed of it
  std::int64_t outside = 0;     ///< elements that differ by more than the tolerance, or are finite on one side only
  std::int64_t notANumber = 0;  ///< elements that are NaN on either side: equal to nothing
  bool within() const { return outside == 0 && notANumber == 0; }
};

/// NotChecked: the ranks ran as planned, and what they computed was compared with nothing.
enum class RunVerdict : std::uint8_t { Failed, Passed, NotChecked };

struct RunReport {
  RunVerdict verdict = RunVerdict::Failed;
  launch::Backend backend = launch::Backend::Gloo;
  std::string comparedWith;  ///< "expected.safetensors", "an unsplit run", "" (nothing)
  std::vector<OutputDifference> outputs;
  launch::RunOutcome outcome;
  std::vector<std::string> violations;  ///< what the ranks did otherwise than the plan says, one sentence each
  std::vector<std::string> notes;
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

/// What a safetensors file of inputs asks of the capture.
struct InputShape {
  std::int64_t batch = 1, sequence = 1;
  bool hasMask = false, hasLabels = false;
};
/// BadInput names the file, also where it asks for what cannot be captured. `wantsLoss`: with a loss where there are
/// labels.
Result<InputShape> readInputShape(const std::filesystem::path& file, bool wantsLoss);

/// Absolute and relative tolerance of a comparison in this element type on CPUs: float32 1e-4, float16 1e-2, bfloat16
/// 6e-2 (8 bits of mantissa, and sums in another order), float64 1e-8.
double defaultTolerance(graph::DType dtype);

/// The options that capture the same graph again.
torch_capture::CaptureOptions captureOptionsOf(const plan::ModelInfo& info);

/// Starts the ranks (and, where asked, the unsplit run), waits, compares: outputs with what is expected, and what each
/// rank read, allocated and sent with the plan. `observer` sees every event of the split run. Environment when the
/// ranks, or the unsplit run, do not fit into memory; BadInput when `expect` has no or another output, or `checkFolder`
/// does not hold.
Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress = {});

/// Schema "cleave.run/1"; `passed` is true, false, or null where nothing was compared.
std::string toJson(const RunReport& report, const plan::Plan& plan);

}  // namespace cleave::pipeline
