#pragma once
/// The stored weights of a model.
#include "base/progress.h"
#include "formats/weight_files.h"
#include "plan/plan.h"

namespace cleave::pipeline {

/// The files with the weights of a plan's model, and their tensors.
struct Checkpoint {
  formats::WeightPlaces places;
  formats::WeightSources tensors;
};
Result<Checkpoint> readCheckpoint(const plan::ModelInfo& info, const Progress& progress = {});

}  // namespace cleave::pipeline
