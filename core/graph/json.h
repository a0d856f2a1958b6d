#pragma once
/// A graph as JSON, inside plan files, traces and exports: deterministic (same graph, same bytes), every field bounded
/// on read. The layout stands in json.cpp.
#include "base/json_writer.h"
#include "graph/graph.h"

#include <nlohmann/json_fwd.hpp>

namespace cleave::graph {

/// Written as it goes: for graphs of 10,000 nodes, where a tree costs more than the rest of a plan.
void writeGraph(JsonWriter& json, const Graph& graph);
/// The same as a text of its own.
std::string toJson(const Graph& graph);
/// BadInput names the path of the first wrong field ("program.nodes[12].args[3]: ...").
Result<Graph> graphFromJson(const nlohmann::json& json);

}  // namespace cleave::graph
