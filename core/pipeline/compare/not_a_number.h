#pragma once
/// Causes of NaN in the outputs that do not depend on the split.
#include "base/progress.h"
#include "base/result.h"
#include "plan/plan.h"

#include <filesystem>
#include <string>

namespace cleave::pipeline {

/// Returns true if the file has labels and all are -100, so that the loss averages over 0 labels.
Result<bool> areAllLabelsIgnored(const std::filesystem::path& inputs);

/// A sentence about the first weight of a model folder that has an infinity or NaN; empty if all are finite. Reads all
/// weights, so call it only to explain outputs that are not finite. BadInput if the folder cannot be read.
Result<std::string> firstNonFiniteWeight(const plan::ModelInfo& model, const Progress& progress);

}  // namespace cleave::pipeline
