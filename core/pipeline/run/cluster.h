#pragma once
/// The commands that start the ranks of a plan on several machines, for the command line and the window.
#include "base/progress.h"
#include "launch/cluster.h"
#include "pipeline/run/run_request.h"

namespace cleave::pipeline {

/// How the ranks of a plan start on other machines.
struct Elsewhere {
  launch::ClusterLauncher launcher = launch::ClusterLauncher::Torchrun;
  int nodes = 1;
  std::string host;  ///< host name of node 0; see ClusterRun
  int port = launch::kMasterPort;
  std::string planFile;      ///< path on the nodes
  std::string rankProgram;   ///< path on the nodes; empty: the one installed with this program
  int connectTimeoutS = 60;  ///< seconds until all ranks must have connected
  std::optional<launch::ReportTo> report;
};

/// The request's backend. For auto: the backend that this machine would choose for the ranks of one node.
Result<launch::Backend> remoteBackend(const RunRequest& request, int nodes, const Progress& progress);
/// The commands as text (launch/cluster.h), with the files that the ranks read. BadUsage if the run is not possible.
Result<std::string> clusterText(const RunRequest& request, const Elsewhere& elsewhere, const Progress& progress);

/// The host name of this machine. It is the default for node 0.
std::string ownHostName();

}  // namespace cleave::pipeline
