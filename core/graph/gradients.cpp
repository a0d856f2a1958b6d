#include "graph/gradients.h"

#include "graph/operators.h"

#include <algorithm>

namespace cleave::graph {
namespace {

bool isTrainable(const Graph& graph, const Node& node) {
  return node.kind == NodeKind::Parameter && !graph.frozen.contains(graph.value(node.results[0]).name);
}

/// Marks values that depend on a trained parameter, and nodes likewise.
void findDependent(const Graph& graph, Gradients& found) {
  std::vector<bool> stops;
  for (const std::string& op : graph.ops) stops.push_back(operatorOf(op).stopsGradient);
  for (auto id : idRange<NodeId>(graph.nodes.size())) {
    const Node& node = graph.node(id);
    bool depends = isTrainable(graph, node);
    if (node.kind == NodeKind::Call && !stops[node.op.index()])
      forEachOperand(node, [&](ValueId operand) { depends = depends || found.of(operand); });
    if (!depends) continue;
    for (ValueId result : node.results) {
      if (!isReal(graph, result)) continue;
      found.ofValue[result.index()] = true;
      found.ofNode[id.index()] = true;
    }
  }
}

void findOutputs(const Graph& graph, Gradients& found) {
  for (const Output& output : graph.outputs) {
    const bool isParameter = graph.node(graph.value(output.value).producer).kind == NodeKind::Parameter;
    if (isParameter || !found.of(output.value) || elementCount(graph.shapeOf(output.value)) != 1) continue;
    if (!found.loss.isValid() || output.name == "loss") found.loss = output.value;
  }
  for (const Output& output : graph.outputs)
    found.isOutput[output.value.index()] = !found.loss.isValid() || output.value == found.loss;
}

/// Values that no output depends on have no gradient.
void dropIdle(const Graph& graph, Gradients& found) {
  std::vector<bool> gets = found.isOutput;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool isAsked = found.ofNode[n] && std::any_of(node.results.begin(), node.results.end(),
                                                        [&](ValueId v) { return gets[v.index()]; });
    found.ofNode[n] = isAsked;
    if (isAsked) {
      forEachOperand(node, [&](ValueId operand) { gets[operand.index()] = true; });
    } else {
      for (ValueId result : node.results) found.ofValue[result.index()] = false;
    }
  }
}

}  // namespace

Gradients findGradients(const Graph& graph) {
  Gradients found;
  found.ofValue.resize(graph.values.size());
  found.isOutput.resize(graph.values.size());
  found.ofNode.resize(graph.nodes.size());
  findDependent(graph, found);
  findOutputs(graph, found);
  dropIdle(graph, found);
  return found;
}

}  // namespace cleave::graph
