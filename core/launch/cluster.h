#pragma once
/// Command lines that run a plan on several machines with torchrun or Slurm. The command line and the window show this
/// same text.
///
///     ClusterRun run{.ranks = 4, .nodes = 2, .host = "node0", .planFile = "plan.json"};
///     clusterCommands(run);   // a comment with the needs of each node, then a line for each node
#include "base/result.h"
#include "launch/backend.h"
#include "protocol/tcp.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

enum class ClusterLauncher : std::uint8_t { Torchrun, Srun };
std::optional<ClusterLauncher> parseClusterLauncher(std::string_view text);

/// Address and token of the listener (listener.h).
struct ReportTo {
  protocol::HostPort listener;
  std::string token;
};

inline constexpr int kMasterPort = 29'500;  ///< torchrun's own default

struct ClusterRun {
  ClusterLauncher launcher = ClusterLauncher::Torchrun;
  int ranks = 2, nodes = 1;
  std::string host;                 ///< host of node 0, where the ranks meet; torchrun on one node and srun do not need
                                    ///< it
  int port = kMasterPort;           ///< port there; with srun the ranks derive it from the job id
  Backend backend = Backend::Gloo;  ///< Auto is resolved before
  std::string rankProgram = "cleave-rank", planFile = "plan.json";
  std::vector<std::string> rankArguments;
  std::vector<std::pair<std::string, std::string>> needed;  ///< further files: path and purpose
  std::optional<ReportTo> report;
};

/// Lines for a shell; all but the commands are comments. BadUsage if the run is impossible: ranks that do not divide
/// over the nodes, or no host for node 0.
Result<std::string> clusterCommands(const ClusterRun& run);

}  // namespace cleave::launch
