#pragma once
/// The flags of `run`, `train`, `generate` and `bisect`, and the request that they make of a plan.
#include "cli/cluster_flags.h"
#include "cli/old_flags.h"
#include "cli/run_source.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::cli {

/// What the ranks do with the plan. Each mode is a command.
enum class RunMode { Forward, Train, Generate, Bisect };

struct RunFlags {
  RunMode mode = RunMode::Forward;
  RunSource source;
  ClusterFlags cluster;
  std::string backend = "auto", output, json, shapes, timeline, against;
  std::optional<double> rtol, atol;
  program::Training training;
  std::optional<double> clipNorm;
  double silence = std::chrono::duration<double>(launch::kSilence).count();
  std::optional<int> collectiveTimeout;
  bool bisects = false;  ///< by `run --bisect`, the old form of `bisect`
  bool padsToPlanned = false, skipWeights = false, initMissing = false, noCheck = false, ignoreMemory = false;

  /// Declares the flags of this mode; `run` has those of the others too, hidden, as earlier versions had them.
  void addTo(CLI::App& command);
  /// Settles `mode` and what follows from it. BadUsage for flags that exclude each other.
  Result<void> check();
  /// BadUsage if a file to write is one that the run reads.
  Result<void> checkOutputs(std::vector<NamedFile> read) const;
  /// BadUsage names the flag.
  Result<pipeline::RunRequest> request(std::shared_ptr<const plan::Plan> plan) const;

 private:
  void addSharedFlags(CLI::App& command);
  void addPassFlags(CLI::App& command);
  void addTrainingFlags(CLI::App& command);
  void addGenerationFlags(CLI::App& command);
  void addBisectionFlags(CLI::App& command);
  CLI::Option* old(CLI::Option* option, const char* instead);
  RunMode modeOfOldFlags() const;
  Result<void> checkTraining() const;
  Result<void> checkGeneration() const;
  Result<void> checkBisection() const;
  Result<void> checkShapes() const;

  OldFlags m_oldFlags;
  std::vector<const CLI::Option*> m_trainingFlags;  ///< that mean nothing in another mode
};

}  // namespace cleave::cli
