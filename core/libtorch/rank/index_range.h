#pragma once
/// Which values the integer inputs of a program may have: those that the operators which index with them can take.
/// Checked on the host before a kernel sees them: on a GPU a wrong index ends the device's context with words that help
/// nobody. LibTorch inside.
#include "base/result.h"
#include "graph/graph.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace cleave::torch_rank {

struct IndexRange {
  std::int64_t low = 0, high = 0;       ///< [low, high)
  std::optional<std::int64_t> ignored;  ///< a value that is no index: ignore_index of a loss
  std::string of;                       ///< "the 256 rows of embedding_0's table"
};

/// What is asked of an input, by everything that indexes with it directly or behind operators that keep its values
/// (views, slices, copies, an added number). In graph order; empty: nothing indexes with it.
std::vector<IndexRange> indexRangesOf(const graph::Graph& graph, graph::ValueId input);

/// BadInput names the first element of an integer tensor on the CPU that is none of the range's, and where it is.
Result<void> checkIndices(const std::string& name, const at::Tensor& values, const std::vector<IndexRange>& ranges);

}  // namespace cleave::torch_rank
