#pragma once
/// Checks a checkpoint against the tied weights in its config. Internal to this room.
#include "formats/model_folder.h"
#include "graph/graph.h"

namespace cleave::pipeline {

/// A checkpoint may have a tied parameter under both names. If their numbers differ, transformers computes with two
/// parameters, and a graph with one would be wrong: BadInput names both. The check compares the first elements and some
/// from the middle.
Result<void> checkTiedWeights(const formats::ModelFolder& folder, const graph::Graph& graph);

}  // namespace cleave::pipeline
