#pragma once
/// Patterns of operators in an ATen graph, for passes that recognise a layer in the operators that compute it. Only
/// this room includes it. The graph must outlive the object.
///
/// All queries look through aliases (casts and moves without effect) and through added and removed dimensions of size
/// 1. Equal views of the same value count as equal, because functionalization recreates them after a mutation.
#include "graph/arguments.h"
#include "graph/graph.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::torch_capture {

/// activation(gate) · up, from the two halves of `input`'s last dimension. For clamped_swiglu, from its even and odd
/// elements (graph::ParallelOp::MoeExperts).
struct GatedActivation {
  std::string_view name;  ///< as in bridge::ExpertsCall
  graph::ValueId input;
  double alpha = 1, limit = 0;
};

class Spelling {
 public:
  explicit Spelling(const graph::Graph& graph) : m_graph(graph) {}

  graph::ValueId withoutAliases(graph::ValueId value) const;
  /// The call that computes the value if it is this operator; else null.
  const graph::Node* call(graph::ValueId value, std::string_view op) const;
  std::uint32_t resultIndex(graph::ValueId value) const;
  bool isParameter(graph::ValueId value) const;
  bool areAlike(graph::ValueId a, graph::ValueId b) const;

  /// The base of a `view`; invalid if the value is not a view.
  graph::ValueId viewed(graph::ValueId value) const;
  /// `table[ids]` along the first dimension: {table, ids}; invalid ids if the value has another form.
  std::pair<graph::ValueId, graph::ValueId> picked(graph::ValueId value) const;
  /// The non-negative dividend of a division by a positive number, rounded down. Invalid if the value has another form.
  graph::ValueId quotient(graph::ValueId value, std::int64_t divisor) const;
  /// The permutation that this one inverts; invalid if it is unknown.
  graph::ValueId inverseOf(graph::ValueId permutation) const;
  /// The value whose rows are repeated `times` times, each directly after itself. Invalid if the value has another
  /// form.
  graph::ValueId repeated(graph::ValueId value, std::int64_t times) const;
  /// The two factors of a product of tensors, in both orders; empty if the value is not a product.
  std::vector<std::pair<graph::ValueId, graph::ValueId>> factors(graph::ValueId value) const;
  std::optional<GatedActivation> gatedActivation(graph::ValueId value) const;

 private:
  bool isHalf(graph::ValueId value, int half, graph::ValueId& whole) const;
  std::pair<std::string_view, graph::ValueId> activation(graph::ValueId value) const;
  std::optional<GatedActivation> clampedSwiglu(graph::ValueId raised, graph::ValueId swish) const;
  /// Every second element of the last dimension, starting at `first`, clamped: the unsliced value, and the limits.
  struct Clamped {
    graph::ValueId whole;
    std::optional<double> least, most;
  };
  std::optional<Clamped> clampedEverySecond(graph::ValueId value, std::int64_t first) const;
  /// The factor if `value` is a number times `of`; nullopt if it is not.
  std::optional<double> multipleOf(graph::ValueId value, graph::ValueId of) const;

  const graph::Graph& m_graph;
};

}  // namespace cleave::torch_capture
