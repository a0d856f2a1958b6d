#include "cli/cluster_flags.h"

#include "base/option_types.h"
#include "cli/console.h"
#include "cli/planning.h"

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
          "Of a plan file: print the commands that run it on --nodes, torchrun or srun, and start nothing; with "
          "--listen, which of both it prints first")
      ->check(CLI::IsMember({"torchrun", "srun"}));
  command.add_option("--nodes", nodes, "Machines that the ranks are on")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option(
      "--master", master,
      "HOST[:PORT] of node 0, where ranks meet (default: the host of --listen, or this one; port 29500)");
  command
      .add_option("--rank-program", rankProgram, "cleave-rank as the nodes find it (default: the one installed here)")
      ->type_name(option_types::kFile);
  command.add_option("--listen", listen,
                     "Of a plan file: ADDRESS[:PORT] of this machine where ranks report that others start, on any "
                     "machines; prints the commands, waits for the ranks, and compares as ever");
  command
      .add_option("--connect-timeout", connectTimeoutS,
                  "With --listen or --print-command: seconds for all ranks to come, once the first has")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
}

Result<void> ClusterFlags::check(const std::string& model, bool hasShapes) const {
  if (isAsked()) {
    const char* flag = listen.empty() ? "--print-command" : "--listen";
    if (hasShapes) return fail(ErrorCode::BadUsage, "{} and --shapes exclude each other.", flag);
    if (isPlanFile(model)) return {};
    return fail(ErrorCode::BadUsage,
                "{} needs a plan file, which all nodes read: write one with cleave-cli plan --json.", flag);
  }
  const char* flag = nodes != 1             ? "--nodes"
                     : !master.empty()      ? "--master"
                     : !rankProgram.empty() ? "--rank-program"
                                            : "";
  if (!*flag) return {};
  return fail(ErrorCode::BadUsage,
              "{} is for ranks on other machines: add --print-command torchrun (or srun), or --listen ADDRESS.", flag);
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
  CLEAVE_TRY(request.backend, pipeline::backendElsewhere(request, nodes, progress));
  request.attended = pipeline::Attended{&*listener, connectTimeoutS * 1000, say};
  return {};
}

Result<void> ClusterFlags::sayHow(const pipeline::RunRequest& request, const std::string& planFile,
                                  const launch::Listener& listener, const Progress& progress) const {
  CLEAVE_TRY(const std::string text, commands(request, planFile, &listener, progress));
  say(text.substr(0, text.size() - 1));
  return {};
}

}  // namespace cleave::cli
