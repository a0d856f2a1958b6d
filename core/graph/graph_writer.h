#pragma once
/// A graph in the form of json.h, written as it goes: for graphs of 10,000 nodes, where a tree costs more than
/// the rest of the plan. A test compares the two.
#include "base/json_writer.h"
#include "graph/graph.h"

namespace cleave::graph {

void writeGraph(JsonWriter& json, const Graph& graph);

}  // namespace cleave::graph
