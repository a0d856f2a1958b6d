#pragma once
/// From the operators in LibTorch's dispatcher to core ATen: one row for each operator that is not core.
///
///     _unsafe_view → view     t, transpose → permute     silu → sigmoid · mul     arange → arange.start_step
///
/// A row gets the finished call and appends other calls with the same results instead. Operators without a row do not
/// change. A copying view (`slice_copy`) computes the same as its view; only its memory differs, and a graph has no
/// memory layout. All copying views use the row, or at least the name, of their view.
#include "graph/graph.h"
#include "graph/graph_builder.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::torch_capture {

/// One recorded call, and the function that appends calls in its place.
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

/// The view of a copying view: "aten::slice.Tensor" for "aten::slice_copy.Tensor"; nullopt for every other operator.
/// Uses LibTorch's own tag and not the name, because `_to_copy` and `index_copy` are not copying views.
std::optional<std::string> viewOf(std::string_view op);

/// The function that appends this operator ("aten::t"); never null.
Normaliser normaliserFor(std::string_view op);

}  // namespace cleave::torch_capture
