#pragma once
/// How a node is called in what is told of a run.
#include "graph/graph.h"

#include <string>

namespace cleave::pipeline {

/// "linear in model.layers.0.mlp.up_proj"; outside of modules "add of add_0"; of the ATen graph or of a rank program.
std::string nodeName(const graph::Graph& graph, graph::NodeId node);

}  // namespace cleave::pipeline
