#pragma once
#include "graph/graph.h"
#include "spec/input/input_spec.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cleave::torch_capture {

/// The two graphs of a recorded forward pass, and what they were recorded for.
struct CapturedModel {
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<graph::Graph> aten;  ///< outputs "logits" and, with loss, "loss"; not shared with others
  std::string architecture, modelType;
  spec::InputSpec input;  ///< what was asked, settled (spec/input/input_spec.h): another capture gives the same graphs
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = spec::kDefaultSequence;  ///< 0: an exported program's inputs lack this size
  std::string dropouts;                     ///< probabilities above 0 of a folder's config (families/dropouts.h)
  std::vector<std::string> writtenBuffers;  ///< exported programs: stored tensors that a pass changes
  double captureMs = 0, decomposeMs = 0;
};

}  // namespace cleave::torch_capture
