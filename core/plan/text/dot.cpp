#include "plan/text/dot.h"
#include "base/quantities.h"
#include "plan/text/work.h"

#include <algorithm>
#include <array>
#include <unordered_map>

/// Colours are Okabe and Ito's palette for people who see colours differently (https://jfly.uni-koeln.de/color/): one
/// hue a dimension. A layer has the colour of its strategy instead, because a row layer is split although its result is
/// whole. Form and placement are written out too, so that no hue carries a fact alone.

namespace cleave::plan {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::ScopeId;

constexpr std::array<std::string_view, 5> kDimColours{"#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#F0E442"};
constexpr std::string_view kReplicatedColour = "#B8BDC4";
/// In the order of LayerSplit; white reads on all of those that are split.
constexpr std::array<std::string_view, kLayerSplits> kSplitColours{"#5A45B0", "#3F6B78", "#A02C66",         "#7A5C00",
                                                                   "#0072B2", "#00725A", kReplicatedColour, "#FFFFFF"};

std::string_view colourOf(const Placement& placement, int ranks) {
  if (placement.isReplicatedOn(ranks)) return kReplicatedColour;
  return kDimColours[std::min<std::size_t>(static_cast<std::size_t>(placement.firstDim()), kDimColours.size() - 1)];
}

/// A quoted DOT string; `\n` in the text stays a line break.
std::string dotString(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

class DotWriter {
 public:
  explicit DotWriter(const Plan& plan)
      : m_plan(plan), m_graph(*plan.graph), m_nodesIn(m_graph.scopes.size()), m_scopesIn(m_graph.scopes.size()) {
    for (NodeId node : idRange<NodeId>(m_graph.nodes.size()))
      m_nodesIn[m_graph.node(node).scope.index()].push_back(node);
    for (std::size_t i = 1; i < m_graph.scopes.size(); ++i)
      m_scopesIn[m_graph.scopes[i].parent.index()].push_back(ScopeId(i));
    for (const CollectivePlan& collective : plan.collectives) addBadge(collective);
  }

  std::string write() && {
    m_text = "digraph plan {\n";
    m_text += "  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=10];\n";
    m_text += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
    const std::string title =
        fmt::format("{} on {}", m_plan.model.architecture.empty() ? "Plan" : m_plan.model.architecture,
                    counted(m_plan.spec.ranks, "rank"));
    m_text += fmt::format("  label={};\n  labelloc=t;\n", dotString(title));
    writeScope(ScopeId(0), 1);
    for (NodeId node : idRange<NodeId>(m_graph.nodes.size())) writeEdges(node);
    writeOutputs();
    return std::move(m_text) + "}\n";
  }

 private:
  /// "all_reduce 128 B" under the value it completes or feeds; equal ones once with their number.
  void addBadge(const CollectivePlan& collective) {
    const std::string badge = fmt::format("{}, {}", rules::toText(collective.kind), counted(collective.bytes, "byte"));
    auto& badges = m_badges[collective.after];
    const auto same =
        std::find_if(badges.begin(), badges.end(), [&](const auto& entry) { return entry.first == badge; });
    if (same != badges.end()) {
      ++same->second;
    } else {
      badges.emplace_back(badge, 1);
    }
  }

  void writeScope(ScopeId scope, int depth) {
    const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
    for (NodeId node : m_nodesIn[scope.index()]) writeNode(node, indent);
    for (ScopeId child : m_scopesIn[scope.index()]) {
      const std::string& path = m_graph.scope(child).path;
      m_text += fmt::format("{}subgraph cluster_{} {{\n{}  label={};\n{}  color=\"#8A9099\";\n", indent, child.index(),
                            indent, dotString(path.substr(path.rfind('.') + 1)), indent);
      writeScope(child, depth + 1);
      m_text += indent + "}\n";
    }
  }

  void writeNode(NodeId id, const std::string& indent) {
    const Node& node = m_graph.node(id);
    if (node.results.empty()) return;
    const ValueId result = node.results[0];
    const graph::Value& value = m_graph.value(result);
    const Placement& placement = m_plan.solution->of(result);
    std::string label = fmt::format("{}\n{} {}", value.name, graph::toText(value.type), placement.text());
    std::string colours = fmt::format("fillcolor=\"{}\"", colourOf(placement, m_plan.spec.ranks));
    if (const auto& option = m_plan.solution->strategies[id.index()]) {
      const LayerSplit split = layerSplit(option->strategy, option->weight, m_plan.spec.ranks);
      label += fmt::format("\n{}", toText(split));
      colours = fmt::format("fillcolor=\"{}\"{}", kSplitColours[static_cast<std::size_t>(split)],
                            isSplit(split) ? ", fontcolor=white" : "");
    }
    bool communicates = false;
    if (const auto badges = m_badges.find(value.name); badges != m_badges.end()) {
      communicates = true;
      for (const auto& [badge, count] : badges->second)
        label += fmt::format("\n{}{}", badge, count > 1 ? fmt::format(" x{}", count) : "");
    }
    const std::string_view shape = node.kind == NodeKind::Parameter ? ", shape=cylinder"
                                   : node.kind == NodeKind::Call    ? ""
                                                                    : ", shape=ellipse";
    m_text += fmt::format("{}n{} [label={}, {}{}{}];\n", indent, id.index(), dotString(label), colours, shape,
                          communicates ? ", penwidth=3" : "");
  }

  void writeEdges(NodeId id) {
    std::vector<ValueId> operands = graph::operandsOf(m_graph.node(id));
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    for (ValueId operand : operands)
      m_text += fmt::format("  n{} -> n{};\n", m_graph.value(operand).producer.index(), id.index());
  }

  void writeOutputs() {
    for (std::size_t i = 0; i < m_graph.outputs.size(); ++i) {
      const graph::Output& output = m_graph.outputs[i];
      m_text += fmt::format("  out{} [label={}, shape=ellipse, fillcolor=white];\n", i, dotString(output.name));
      m_text += fmt::format("  n{} -> out{};\n", m_graph.value(output.value).producer.index(), i);
    }
  }

  const Plan& m_plan;
  const Graph& m_graph;
  std::vector<std::vector<NodeId>> m_nodesIn;                                          ///< by scope
  std::vector<std::vector<ScopeId>> m_scopesIn;                                        ///< by scope
  std::unordered_map<std::string, std::vector<std::pair<std::string, int>>> m_badges;  ///< by value name
  std::string m_text;
};

}  // namespace

std::string toDot(const Plan& plan) { return DotWriter(plan).write(); }

}  // namespace cleave::plan
