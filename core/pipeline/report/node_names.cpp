#include "pipeline/report/node_names.h"

#include "graph/op_names.h"

#include <fmt/format.h>

namespace cleave::pipeline {

std::string nodeName(const graph::Graph& graph, graph::NodeId id) {
  const graph::Node& node = graph.node(id);
  const std::string_view op = graph::shortName(graph.opName(node));
  if (const std::string& scope = graph.scope(node.scope).path; !scope.empty())
    return fmt::format("{} in {}", op, scope);
  return fmt::format("{} of {}", op, node.results.empty() ? graph.name : graph.value(node.results[0]).name);
}

}  // namespace cleave::pipeline
