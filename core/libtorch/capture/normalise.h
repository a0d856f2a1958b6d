#pragma once
/// From what LibTorch's dispatcher shows to core ATen: one row per operator that is not core.
///
///     _unsafe_view → view     t, transpose → permute     silu → sigmoid · mul     arange → arange.start_step
///
/// A row sees the finished call and appends other calls in its place; what it appends has the same results. Operators
/// without a row stay as they are. A copying view (`slice_copy`) computes what its view does, only its memory differs,
/// which a graph does not speak of: all of them take the row, or at least the name, of their view.
#include "graph/graph.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::torch_capture {

/// One recorded call, and where it goes.
struct RecordedCall {
  graph::GraphBuilder& builder;
  std::string_view op;
  std::vector<graph::Argument>& args;  ///< schema order, complete; may be moved from
  std::vector<graph::TensorType>& results;
  graph::ScopeId scope;
  graph::NodeId origin;

  std::vector<graph::ValueId> append(std::string_view otherOp, std::vector<graph::Argument> otherArgs) const {
    return builder.addCall(otherOp, std::move(otherArgs), results, scope, origin);
  }
};

using Normaliser = std::vector<graph::ValueId> (*)(const RecordedCall&);

/// The view that a copying view stands for, "aten::slice.Tensor" for "aten::slice_copy.Tensor"; nullopt for every other
/// operator. By LibTorch's own tag of such operators, not by name: `_to_copy` and `index_copy` are none.
std::optional<std::string> viewOf(std::string_view op);

/// How this operator ("aten::t") is appended; never null.
Normaliser normaliserFor(std::string_view op);

}  // namespace cleave::torch_capture
