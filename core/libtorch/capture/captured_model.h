#pragma once
#include "formats/exported_sizes.h"
#include "graph/graph.h"

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
  graph::DType dtype = graph::DType::Float32;
  std::int64_t batch = 1, sequence = 128;  ///< as captured (CaptureOptions::cutsSequence); 0: the inputs of an exported
                                           ///< program lack this size
  std::string dropouts;                    ///< probabilities above 0 of a folder's config (families/dropouts.h)
  formats::SymbolSizes sizes;              ///< exported programs only
  std::vector<std::string> writtenBuffers;  ///< exported programs: stored tensors that a pass changes
  double captureMs = 0, decomposeMs = 0;
};

}  // namespace cleave::torch_capture
