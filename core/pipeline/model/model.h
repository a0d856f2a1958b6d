#pragma once
/// Data that the stages of the pipeline pass on: the opened model, the options of a solve, and the result of a solve.
///
/// This room has no stages: they are in the rooms above it (pipeline/source, pipeline/solve, pipeline/run). A value is
/// immutable once a stage has made it, and travels as `shared_ptr<const T>`.
#include "formats/exported_program.h"
#include "formats/model_folder.h"
#include "graph/graph.h"
#include "plan/plan.h"

#include <memory>

namespace cleave::pipeline {

/// A model that was read and captured by pipeline/source/open.h.
struct Model {
  plan::ModelInfo info;
  formats::ModelFolder folder;  ///< for an exported program: the path of its archive, without a config
  std::shared_ptr<const formats::ExportedProgram> exported;  ///< null: a model folder
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<const graph::Graph> aten;
  plan::Timings timings;
};

}  // namespace cleave::pipeline
