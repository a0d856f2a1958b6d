#pragma once
/// One tensor of a file with expected outputs. Internal to this room.
#include "base/result.h"
#include "formats/safetensors.h"
#include "graph/graph.h"

#include <string>
#include <string_view>

namespace cleave::pipeline {

/// Names of the tensors that cleave-rank writes after training.
inline constexpr std::string_view kLosses = "losses", kParameter = "param.",
                                  kUndetermined = "undetermined.";  // see libtorch/rank/execute/inputs.h

/// A single number may be saved without dimensions or as a list of one.
bool isSameShape(const graph::Shape& a, const graph::Shape& b);
/// BadInput if the file lacks the tensor, or has it in another shape.
Result<const formats::WeightSource*> expectedTensor(const formats::SafetensorsFile& expected, const std::string& name,
                                                    const graph::Shape& shape);

}  // namespace cleave::pipeline
