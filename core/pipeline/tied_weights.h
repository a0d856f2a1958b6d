#pragma once
/// Whether a checkpoint means what its config says of tied weights. Internal to this room.
#include "formats/model_folder.h"
#include "graph/graph.h"

namespace cleave::pipeline {

/// A parameter that the model has under two names may lie in the checkpoint under both. Where these are not the same
/// numbers, transformers computes with two, and a graph with one would compute otherwise: BadInput names both. The
/// first elements and some from the middle are compared.
Result<void> checkTiedWeights(const formats::ModelFolder& folder, const graph::Graph& graph);

}  // namespace cleave::pipeline
