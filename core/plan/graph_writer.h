#pragma once
/// A graph in the form of graph/json.h, written as it goes: for graphs of 10,000 nodes, where a tree costs more than
/// the rest of the plan. A test compares the two. Internal to this room.
#include "plan/json_writer.h"

namespace cleave::plan {

void writeGraph(JsonWriter& json, const graph::Graph& graph);

}  // namespace cleave::plan
