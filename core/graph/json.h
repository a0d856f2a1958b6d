#pragma once
/// A graph as JSON, inside plan files and exports: deterministic (same graph, same bytes), every field bounded on read.
#include "graph/graph.h"

#include <nlohmann/json_fwd.hpp>

namespace cleave::graph {

nlohmann::ordered_json toJson(const Graph& graph);
/// BadInput names the path of the first wrong field ("program.nodes[12].args[3]: ...").
Result<Graph> graphFromJson(const nlohmann::json& json);

nlohmann::ordered_json toJson(const Argument& argument);

}  // namespace cleave::graph
