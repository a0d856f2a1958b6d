#pragma once
/// The valid values of a program's integer inputs, derived from the operators that index with them. They are checked on
/// the host before a kernel uses them, because on a GPU a wrong index breaks the device's context with an unspecific
/// error. This header uses LibTorch.
#include "base/result.h"
#include "graph/graph.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace cleave::torch_rank {

struct IndexRange {
  std::int64_t low = 0, high = 0;       ///< [low, high)
  std::optional<std::int64_t> ignored;  ///< a value that is not used as an index: ignore_index of a loss
  std::string of;                       ///< "the 256 rows of embedding_0's table"
};

/// The ranges of an input, from all operators that index with it directly or after operators that keep its values
/// (views, slices, copies, an added number). In graph order. Empty if no operator indexes with it.
std::vector<IndexRange> indexRangesOf(const graph::Graph& graph, graph::ValueId input);

/// Returns BadInput if an element of an integer tensor on the CPU is out of range. The message has the first such
/// element and its position.
Result<void> checkIndices(const std::string& name, const at::Tensor& values, const std::vector<IndexRange>& ranges);

}  // namespace cleave::torch_rank
