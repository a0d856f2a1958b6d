#include "cli/cluster_flags.h"

#include "cli/console.h"
#include "cli/planning.h"
#include "options/standard_flags.h"
#include "pipeline/run/cluster.h"
#include "settings/option_types.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>

namespace cleave::cli {
namespace {

void say(const std::string& sentence) {
  endProgress();
  std::fprintf(stderr, "%s\n", sentence.c_str());
}

}  // namespace

void ClusterFlags::addTo(CLI::App& command) {
  command
      .add_option(
          "--print-command", printCommand,
          "Print the torchrun or srun commands that run a plan file on --nodes, and start nothing; with --listen, the "
          "kind of command to print first")
      ->check(CLI::IsMember({"torchrun", "srun"}));
  command.add_option("--nodes", nodes, "Number of machines")->check(CLI::Range(1, 4096))->capture_default_str();
  command
      .add_option("--master", master,
                  "HOST[:PORT] of node 0, where ranks connect (default: the host of --listen, or this one; port 29500)")
      ->check(options::notEmpty("write HOST or HOST:PORT"));
  command.add_option("--rank-program", rankProgram, "Path of cleave-rank on the nodes (default: the path here)")
      ->type_name(option_types::kFile);
  command
      .add_option("--listen", listen,
                  "ADDRESS[:PORT] of this machine. Print the commands that run a plan file on other machines, wait for "
                  "their ranks, and compare as usual")
      ->check(options::notEmpty("write ADDRESS or ADDRESS:PORT"));
  command
      .add_option(
          "--connect-timeout", connectTimeoutS,
          "With --listen or --print-command: seconds from the first rank's connection until all must be connected")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
}

Result<void> ClusterFlags::check(const std::string& model, bool hasShapes) const {
  if (isAsked()) {
    const char* flag = listen.empty() ? "--print-command" : "--listen";
    if (hasShapes) return fail(ErrorCode::BadUsage, "{} and --shapes exclude each other.", flag);
    if (isPlanFile(model)) return {};
    return fail(ErrorCode::BadUsage, "{} needs a plan file that all nodes read. Write one with cleave-cli plan --json.",
                flag);
  }
  const char* flag = nodes != 1             ? "--nodes"
                     : !master.empty()      ? "--master"
                     : !rankProgram.empty() ? "--rank-program"
                                            : "";
  if (!*flag) return {};
  return fail(ErrorCode::BadUsage,
              "{} sets up ranks on other machines: add --print-command torchrun (or srun), or --listen ADDRESS.", flag);
}

Result<std::string> ClusterFlags::commands(const pipeline::RunRequest& request, const std::string& planFile,
                                           const launch::Listener* listener, const Progress& progress) const {
  pipeline::Elsewhere elsewhere;
  elsewhere.launcher = launch::parseClusterLauncher(printCommand).value_or(launch::ClusterLauncher::Torchrun);
  elsewhere.nodes = nodes;
  elsewhere.planFile = planFile;
  elsewhere.rankProgram = rankProgram;
  elsewhere.connectTimeoutS = connectTimeoutS;
  if (listener) elsewhere.report = launch::ReportTo{listener->address(), listener->token()};
  if (!master.empty()) {
    CLEAVE_TRY(const protocol::HostPort at, protocol::parseHostPort(master, "--master", launch::kMasterPort));
    elsewhere.host = at.host;
    elsewhere.port = at.port;
  } else if (elsewhere.launcher == launch::ClusterLauncher::Torchrun && nodes > 1) {
    elsewhere.host = listener ? listener->address().host : pipeline::ownHostName();
  }
  return pipeline::clusterText(request, elsewhere, progress);
}

Result<void> ClusterFlags::listenWith(std::optional<launch::Listener>& listener, pipeline::RunRequest& request,
                                      const Progress& progress) const {
  if (listen.empty()) return {};
  CLEAVE_TRY(protocol::HostPort at, protocol::parseHostPort(listen, "--listen", 0));
  const char* token = std::getenv("CLEAVE_RUN_TOKEN");
  CLEAVE_TRY(listener, launch::Listener::open(std::move(at), token ? token : ""));
  CLEAVE_TRY(request.backend, pipeline::remoteBackend(request, nodes, progress));
  request.remote = pipeline::RemoteRanks{&*listener, connectTimeoutS * 1000, say};
  return {};
}

Result<void> ClusterFlags::printInstructions(const pipeline::RunRequest& request, const std::string& planFile,
                                             const launch::Listener& listener, const Progress& progress) const {
  CLEAVE_TRY(const std::string text, commands(request, planFile, &listener, progress));
  say(text.substr(0, text.size() - 1));
  return {};
}

}  // namespace cleave::cli
