#include "graph/checkpoints.h"

#include "graph/blocks.h"
#include "graph/saves.h"

#include <algorithm>
#include <unordered_map>

namespace cleave::graph {
namespace {

bool isCall(const Graph& graph, ValueId value) {
  return graph.node(graph.value(value).producer).kind == NodeKind::Call;
}

/// By NodeId: 1 + the index of the block that contains the node; 0 if no block does.
std::vector<std::uint32_t> blocksOf(const Graph& graph, const std::vector<std::string>& paths) {
  std::unordered_map<std::string, std::uint32_t> known;
  for (const std::string& path : paths) known.emplace(path, static_cast<std::uint32_t>(known.size() + 1));
  std::vector<std::uint32_t> ofScope, ofNode;
  for (const Scope& scope : graph.scopes) {
    const auto found = known.find(blockPath(scope.path));
    ofScope.push_back(found == known.end() ? 0 : found->second);
  }
  for (const Node& node : graph.nodes) ofNode.push_back(node.kind == NodeKind::Call ? ofScope[node.scope.index()] : 0);
  return ofNode;
}

}  // namespace

std::vector<std::string> checkpointableBlocks(const Graph& graph, const Gradients& gradients) {
  std::vector<std::string> paths;
  std::unordered_map<std::string, std::size_t> indexOf;
  for (const Scope& scope : graph.scopes) {
    const std::string path = blockPath(scope.path);
    if (!path.empty() && indexOf.emplace(path, paths.size()).second) paths.push_back(path);
  }
  const std::vector<std::uint32_t> blockOf = blocksOf(graph, paths);
  std::vector<bool> keepsOwn(paths.size(), false);
  for (auto id : idRange<NodeId>(graph.nodes.size())) {
    const std::uint32_t block = blockOf[id.index()];
    if (block == 0) continue;
    const bool isInside = forEachSaved(graph, gradients, id, [&](ValueId value) {
      if (isCall(graph, value) && blockOf[graph.value(value).producer.index()] == block) keepsOwn[block - 1] = true;
    });
    if (isInside) keepsOwn[block - 1] = true;
  }
  std::vector<std::string> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (keepsOwn[i]) found.push_back(std::move(paths[i]));
  }
  return found;
}

Checkpoints findCheckpoints(const Graph& graph, const Gradients& gradients, const std::vector<std::string>& paths) {
  Checkpoints found;
  if (paths.empty()) return found;
  const std::vector<std::uint32_t> blockOf = blocksOf(graph, paths);
  for (const std::string& path : paths) found.blocks.push_back({.path = path});
  found.againIn.resize(graph.nodes.size(), 0);
  found.keepsAgain.resize(graph.nodes.size(), false);
  found.isNeededAgain.resize(graph.values.size(), false);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const NodeId id(static_cast<std::uint32_t>(n));
    const std::uint32_t block = blockOf[n];
    if (block == 0) continue;
    bool keeps = false;
    keeps = forEachSaved(graph, gradients, id, [&](ValueId) { keeps = true; }) || keeps;
    const Node& node = graph.node(id);
    const bool isRead =
        std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return found.isNeeded(result); });
    if (!keeps && !isRead) continue;
    found.againIn[n] = block;
    found.keepsAgain[n] = keeps;
    CheckpointedBlock& of = found.blocks[block - 1];
    if (keeps && !of.last.isValid()) of.last = id;
    of.again.push_back(id);
    for (const ValueId operand : operandsOf(node)) {
      if (!isCall(graph, operand)) continue;
      if (blockOf[graph.value(operand).producer.index()] == block) {
        found.isNeededAgain[operand.index()] = true;
      } else if (std::find(of.kept.begin(), of.kept.end(), operand) == of.kept.end()) {
        of.kept.push_back(operand);
      }
    }
  }
  std::erase_if(found.blocks, [](const CheckpointedBlock& block) { return !block.last.isValid(); });
  for (CheckpointedBlock& block : found.blocks) {
    std::reverse(block.again.begin(), block.again.end());
    const auto index = static_cast<std::uint32_t>(&block - found.blocks.data() + 1);
    for (const NodeId node : block.again) found.againIn[node.index()] = index;
  }
  return found;
}

}  // namespace cleave::graph
