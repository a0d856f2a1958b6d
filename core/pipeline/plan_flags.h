#pragma once
/// The flags that say how a model is captured and solved: what `plan`, `run` and `export` read, and what the window
/// writes as "the same on the command line". One way and back:
///
///     PlanFlags::of("models/llama", capture, solve)->arguments();   // {"models/llama", "--ranks", "4", ...}
///     PlanFlags flags;  flags.addTo(command);  command.parse(...);  flags.solveOptions();   // equals `solve`
#include "base/overwriting.h"
#include "pipeline/solve.h"

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
  std::vector<std::string> sizes;  ///< of an exported program: "s70=16"
  std::string weights;
  std::uint64_t seed = 0;
  std::vector<std::string> pins, rulesOff, redistributable, freeze, trainOnly;
  std::string device = std::string(kDefaultDevice), optimizer = "adamw", memoryBudget, slack = "1";
  bool isTraining = false, checkpointsActivations = false;
  /// Of a prompt that is generated behind: set by who does that, and no option.
  graph::CacheUse cacheUse = graph::CacheUse::None;
  std::int64_t cachePositions = 0;

  /// `device`: the file that the profile was read from; empty: it goes by its name.
  static PlanFlags of(const std::string& model, const torch_capture::CaptureOptions& capture, const SolveOptions& solve,
                      const std::string& device = {});
  /// Answers the options that say how a model is captured and solved: all but MODEL itself.
  std::vector<const CLI::Option*> addTo(CLI::App& command);
  /// BadUsage when MODEL is a plan, which has settled all of them, and one of these options was given.
  Result<void> checkPlanStandsAlone(const std::vector<const CLI::Option*>& options) const;
  /// The words that `addTo`'s parser reads as these flags; defaults are left out, but for the ranks.
  std::vector<std::string> arguments() const;
  /// The files that these flags have read: MODEL's, and a device profile's.
  std::vector<NamedFile> filesRead() const;
  Result<torch_capture::CaptureOptions> captureOptions() const;
  Result<SolveOptions> solveOptions() const;

 private:
  Result<formats::AskedSizes> askedSizes() const;
  Result<bool> wantsDropout() const;
  Result<solve::CostSettings> costSettings() const;
};

/// A model opened, solved and planned as the flags say.
struct Planned {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
  std::shared_ptr<const plan::Plan> plan;  ///< null when there is no solution; `planError` says why
  Error planError;
};
Result<Planned> planModel(const PlanFlags& flags, bool record, const Progress& progress);

}  // namespace cleave::pipeline
