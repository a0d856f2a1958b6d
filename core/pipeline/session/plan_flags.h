#pragma once
/// The flags that define how a model is captured and solved. `plan`, `run` and `export` read them, and the window
/// prints them as the equivalent command line. Both directions:
///
///     PlanFlags::of("models/llama", capture, solve)->arguments();   // {"models/llama", "--ranks", "4", ...}
///     PlanFlags flags;  flags.addTo(command);  command.parse(...);  flags.solveOptions();   // equals `solve`
#include "base/overwriting.h"
#include "libtorch/capture/capture.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solve_options.h"
#include "pipeline/model/solved.h"
#include "pipeline/solve/devices.h"
#include "plan/plan.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cleave::pipeline {

struct PlanFlags {
  std::string model;
  int ranks = 2;
  std::string engine = std::string(solve::toText(SolveOptions().engine)), candidateSet, sequenceParallel = "off", dtype,
              mask = "off", tokenTypes = "off", loss = "on", dropout = "off";
  std::optional<std::int64_t> batch, sequence;
  std::int64_t logitsToKeep = 0;
  std::vector<std::string> sizes;  ///< sizes of an exported program: "s70=16"
  std::string weights;
  std::uint64_t seed = 0;
  std::vector<std::string> pins, rulesOff, redistributable, freeze, trainOnly;
  std::string device = std::string(kDefaultDevice), optimizer = "adamw", memoryBudget, slack = "1";
  bool isTraining = false, checkpointsActivations = false;
  /// KV cache of a prompt. The caller sets it for generation; it is not an option.
  graph::CacheUse cacheUse = graph::CacheUse::None;
  std::int64_t cachePositions = 0;

  /// `device`: the file of the device profile; empty: use the name of the profile.
  static PlanFlags of(const std::string& model, const torch_capture::CaptureOptions& capture, const SolveOptions& solve,
                      const std::string& device = {});
  /// Adds the options, and returns all of them but MODEL.
  std::vector<const CLI::Option*> addTo(CLI::App& command);
  /// BadUsage if MODEL is a plan and one of these options is given: a plan already has all these settings.
  Result<void> checkNoSettingsWithPlan(const std::vector<const CLI::Option*>& options) const;
  /// The arguments that the parser of `addTo` reads as these flags, without defaults except --ranks.
  std::vector<std::string> arguments() const;
  /// The files that these flags read: those of MODEL and of a device profile.
  std::vector<NamedFile> filesRead() const;
  Result<torch_capture::CaptureOptions> captureOptions() const;
  Result<SolveOptions> solveOptions() const;

 private:
  Result<formats::AskedSizes> askedSizes() const;
  Result<bool> wantsDropout() const;
  Result<solve::CostSettings> costSettings() const;
};

/// A model that was opened, solved and planned with PlanFlags.
struct Planned {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
  std::shared_ptr<const plan::Plan> plan;  ///< null if there is no solution; `planError` has the reason
  Error planError;
};
Result<Planned> planModel(const PlanFlags& flags, bool record, const Progress& progress);

}  // namespace cleave::pipeline
