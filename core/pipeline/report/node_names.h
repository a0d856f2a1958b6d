#pragma once
/// Names of nodes in reports of a run.
#include "graph/graph.h"

#include <string>

namespace cleave::pipeline {

/// "linear in model.layers.0.mlp.up_proj"; "add of add_0" outside of modules. `graph`: an ATen graph or a rank program.
std::string nodeName(const graph::Graph& graph, graph::NodeId node);

}  // namespace cleave::pipeline
