#pragma once
/// The flags of `run`, `train`, `generate` and `bisect`, and the request that they make of a plan.
#include "cli/cluster_flags.h"
#include "cli/run_source.h"
#include "options/setting_flags.h"

#include <string>
#include <vector>

namespace cleave::cli {

using spec::RunMode;

class RunFlags {
 public:
  /// `command`: the mode of its command; Forward: `run`.
  explicit RunFlags(RunMode command);
  /// Declares the flags of the command; `run` has those of the others too, hidden, as earlier versions had them.
  void addTo(CLI::App& command);
  /// Reads the flags and what follows from them. BadUsage for flags that exclude each other.
  Result<void> check(const Progress& progress);
  /// BadUsage if a file to write is one that the run reads.
  Result<void> checkOutputs(std::vector<NamedFile> read) const;
  pipeline::RunRequest request(std::shared_ptr<const plan::Plan> plan) const;

  spec::RunSpec spec;  ///< as the flags say, after `check`
  RunSource source;
  ClusterFlags cluster;
  std::string json, timeline;
  std::optional<double> tolerance() const;  ///< of a bisection

 private:
  Result<void> checkTraining() const;
  Result<void> checkGeneration() const;
  Result<void> checkBisection() const;
  Result<void> checkShapes() const;

  RunMode m_command;
  options::SettingFlags<spec::RunSpec> m_flags;
  options::OldFlags m_oldFlags;  ///< `run --bisect`, the old form of `bisect`
};

}  // namespace cleave::cli
