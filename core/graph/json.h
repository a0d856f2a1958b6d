#pragma once
/// A graph as JSON, in plan files, traces and exports. The output is deterministic (same graph, same bytes), and every
/// field is bounded on read. json.cpp describes the layout.
#include "base/json_writer.h"
#include "graph/graph.h"

#include <nlohmann/json_fwd.hpp>

namespace cleave::graph {

/// Streams the graph: for 10,000 nodes, a JSON tree would cost more than the rest of a plan.
void writeGraph(JsonWriter& json, const Graph& graph);
/// The same JSON as a string.
std::string toJson(const Graph& graph);
/// BadInput names the path of the first wrong field ("program.nodes[12].args[3]: ...").
Result<Graph> graphFromJson(const nlohmann::json& json);

}  // namespace cleave::graph
