#pragma once
/// Command lines that run a plan on several machines: what a user types, or puts into a job script, for torchrun or
/// Slurm. What is printed and what is shown are this one text.
///
///     ClusterRun run{.ranks = 4, .nodes = 2, .host = "node0", .planFile = "plan.json"};
///     clusterCommands(run);   // a comment that says what each node needs, then a line for each node
#include "base/result.h"
#include "launch/launcher.h"
#include "protocol/tcp.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

enum class ClusterLauncher : std::uint8_t { Torchrun, Srun };
std::optional<ClusterLauncher> parseClusterLauncher(std::string_view text);

/// Where somebody listens to the ranks (listener.h).
struct ReportTo {
  protocol::HostPort listener;
  std::string token;
};

inline constexpr int kMasterPort = 29'500;  ///< torchrun's own default

struct ClusterRun {
  ClusterLauncher launcher = ClusterLauncher::Torchrun;
  int ranks = 2, nodes = 1;
  std::string host;                 ///< of node 0, where the ranks meet; torchrun on one node and srun do without
  int port = kMasterPort;           ///< there; srun: ranks derive one from the job's number
  Backend backend = Backend::Gloo;  ///< Auto is resolved before
  std::string rankProgram = "cleave-rank", planFile = "plan.json";
  std::vector<std::string> rankArguments;
  std::vector<std::pair<std::string, std::string>> needed;  ///< further files: path, and what it is
  std::optional<ReportTo> report;
};

/// Lines for a shell; all but the commands are comments. BadUsage in one sentence where there is no such run: ranks
/// that do not divide over the nodes, no host to meet at.
Result<std::string> clusterCommands(const ClusterRun& run);

}  // namespace cleave::launch
