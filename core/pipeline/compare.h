#pragma once
/// Compares the tensors of two safetensors files by name, element by element in double precision.
#include "pipeline/pipeline.h"

namespace cleave::pipeline {

/// One row for each tensor of `actual` that `expected` has too, in name order. An element is within when
/// |actual - expected| ≤ atol + rtol·|expected|, or both are NaN. BadInput for shapes that differ, or when no name is common.
Result<std::vector<OutputDifference>> compareTensors(const std::filesystem::path& actual, const std::filesystem::path& expected,
                                                     double rtol, double atol);

}  // namespace cleave::pipeline
