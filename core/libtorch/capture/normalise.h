#pragma once
/// From what LibTorch's dispatcher shows to core ATen: one row per operator that is not core.
///
///     view_copy, _unsafe_view → view     t, transpose → permute     silu → sigmoid · mul     arange → arange.start_step
///
/// A row sees the finished call and appends other calls in its place; what it appends has the same results. Operators
/// without a row stay as they are.
#include "graph/graph.h"

#include <string_view>
#include <vector>

namespace cleave::torch_capture {

/// One recorded call, and where it goes.
struct RecordedCall {
  graph::GraphBuilder& builder;
  std::string_view op;
  std::vector<graph::Argument>& args;         ///< schema order, complete; may be moved from
  std::vector<graph::TensorType>& results;
  graph::ScopeId scope;
  graph::NodeId origin;

  std::vector<graph::ValueId> append(std::string_view otherOp, std::vector<graph::Argument> otherArgs) const {
    return builder.addCall(otherOp, std::move(otherArgs), results, scope, origin);
  }
};

using Normaliser = std::vector<graph::ValueId> (*)(const RecordedCall&);

/// How this operator ("aten::t") is appended; never null.
Normaliser normaliserFor(std::string_view op);

}  // namespace cleave::torch_capture
