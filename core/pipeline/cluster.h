#pragma once
/// A plan on several machines: the commands that start its ranks there, for the command line and the window alike.
#include "launch/cluster.h"
#include "pipeline/run.h"

namespace cleave::pipeline {

/// How the ranks of a plan are started elsewhere.
struct Elsewhere {
  launch::ClusterLauncher launcher = launch::ClusterLauncher::Torchrun;
  int nodes = 1;
  std::string host;  ///< of node 0; see ClusterRun
  int port = launch::kMasterPort;
  std::string planFile;      ///< as its nodes find it
  std::string rankProgram;   ///< the same; empty: the one installed with this program
  int connectTimeoutS = 60;  ///< for all ranks to come
  std::optional<launch::ReportTo> report;
};

/// The request's backend; auto is what a node like this one would take for its ranks.
Result<launch::Backend> backendElsewhere(const RunRequest& request, int nodes, const Progress& progress);
/// The commands as text (launch/cluster.h), with what the ranks of this run read. BadUsage where there is no such run.
Result<std::string> clusterText(const RunRequest& request, const Elsewhere& elsewhere, const Progress& progress);

/// The name by which this host knows itself: what stands for node 0 where the user names no other.
std::string ownHostName();

}  // namespace cleave::pipeline
