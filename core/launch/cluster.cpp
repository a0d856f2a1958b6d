#include "launch/cluster.h"

#include "base/quantities.h"
#include "launch/shell_word.h"

#include <algorithm>

namespace cleave::launch {
namespace {

Result<void> check(const ClusterRun& run) {
  if (run.nodes < 1) return fail(ErrorCode::BadUsage, "The number of nodes is {}; use at least 1.", run.nodes);
  if (run.ranks % run.nodes != 0) {
    std::string fits;
    for (int nodes = 1; nodes <= run.ranks; ++nodes) {
      if (run.ranks % nodes != 0) continue;
      fits += (nodes == 1 ? "" : nodes == run.ranks ? " or " : ", ") + std::to_string(nodes);
    }
    return fail(ErrorCode::BadUsage, "{} do not divide over {}. Use {} nodes.", counted(run.ranks, "rank"),
                counted(run.nodes, "node"), fits);
  }
  if (run.launcher == ClusterLauncher::Torchrun && run.nodes > 1 && run.host.empty())
    return fail(ErrorCode::BadUsage, "torchrun on {} needs the address of node 0: name its host.",
                counted(run.nodes, "node"));
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shellWord(word);
  return line;
}

/// Variables for the ranks: assignments before a command, each with a blank after it.
std::string environmentOf(const ClusterRun& run) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}={} ", name, shellWord(value));
  };
  if (run.launcher == ClusterLauncher::Srun && !run.host.empty()) {
    add("MASTER_ADDR", run.host);
    add("MASTER_PORT", std::to_string(run.port));
  }
  if (run.report) {
    add("CLEAVE_EVENTS_TO", protocol::toText(run.report->listener));
    add("CLEAVE_RUN_TOKEN", run.report->token);
  }
  return text;
}

std::vector<std::string> rankWords(const ClusterRun& run) {
  std::vector<std::string> words{run.rankProgram, run.planFile, "--backend", std::string(toText(run.backend))};
  words.insert(words.end(), run.rankArguments.begin(), run.rankArguments.end());
  return words;
}

std::string torchrunLine(const ClusterRun& run, int node) {
  std::vector<std::string> words{"torchrun", "--no-python"};
  if (run.nodes == 1 && run.host.empty())
    words.push_back("--standalone");
  else
    words.insert(words.end(), {"--nnodes", std::to_string(run.nodes), "--node-rank", std::to_string(node),
                               "--master-addr", run.host, "--master-port", std::to_string(run.port)});
  words.insert(words.end(), {"--nproc-per-node", std::to_string(run.ranks / run.nodes)});
  std::ranges::copy(rankWords(run), std::back_inserter(words));
  return environmentOf(run) + joined(words);
}

std::string srunLine(const ClusterRun& run) {
  const std::string perNode = std::to_string(run.ranks / run.nodes);
  // Block distribution puts rank 0 on the first node, where the others look for it. A failing rank ends the whole step.
  std::vector<std::string> words{"srun",
                                 "--nodes=" + std::to_string(run.nodes),
                                 "--ntasks=" + std::to_string(run.ranks),
                                 "--ntasks-per-node=" + perNode,
                                 "--distribution=block",
                                 "--kill-on-bad-exit=1"};
  if (run.backend == Backend::Nccl) words.push_back("--gpus-per-node=" + perNode);
  std::ranges::copy(rankWords(run), std::back_inserter(words));
  return environmentOf(run) + joined(words);
}

/// The comment above the commands.
std::string comment(const ClusterRun& run) {
  std::vector<std::pair<std::string, std::string>> needed{{run.planFile, "the plan"}};
  needed.insert(needed.end(), run.needed.begin(), run.needed.end());
  needed.emplace_back(run.rankProgram, "with its LibTorch, from the same build as cleave-cli");
  std::size_t width = 0;
  for (const auto& [path, what] : needed) width = std::max(width, path.size());
  const bool isOne = run.nodes == 1;
  std::string text = fmt::format("# {} on {}{}, over {}.\n", counted(run.ranks, "rank"), counted(run.nodes, "node"),
                                 isOne ? "" : fmt::format(", {} on each", run.ranks / run.nodes),
                                 run.backend == Backend::Nccl ? "NCCL" : "Gloo on CPUs");
  text += isOne ? "# It needs:\n" : "# Every node needs, under the same path:\n";
  for (const auto& [path, what] : needed) text += fmt::format("#   {:<{}}  {}\n", path, width, what);
  if (run.nodes > 1)
    text += "# The ranks meet on node 0 and connect to each other on any port. Open all ports between the nodes.\n";
  if (run.report)
    text += fmt::format(
        "# The ranks report to {}, which every node must be able to reach. The token is valid for this "
        "run only.\n",
        protocol::toText(run.report->listener));
  return text;
}

}  // namespace

std::optional<ClusterLauncher> parseClusterLauncher(std::string_view text) {
  if (text == "torchrun") return ClusterLauncher::Torchrun;
  if (text == "srun") return ClusterLauncher::Srun;
  return std::nullopt;
}

Result<std::string> clusterCommands(const ClusterRun& run) {
  CLEAVE_TRY_VOID(check(run));
  std::string text = comment(run);
  if (run.launcher == ClusterLauncher::Srun)
    return text + fmt::format("# Once, in an allocation of {}:\n{}\n", counted(run.nodes, "node"), srunLine(run));
  for (int node = 0; node < run.nodes; ++node) {
    const std::string where =
        node == 0 && !run.host.empty() ? fmt::format("node 0, which is {}", run.host) : fmt::format("node {}", node);
    text += fmt::format("# On {}:\n{}\n", run.nodes == 1 && run.host.empty() ? "this node" : where,
                        torchrunLine(run, node));
  }
  return text;
}

}  // namespace cleave::launch
