#pragma once
/// What values of an ATen graph are made of, however it is spelled: the questions that passes ask which look for a
/// layer in the operators that compute it. Inside this room only. The graph must outlive it.
///
/// Aliases (casts and moves that do nothing) and dimensions of one that come and go are looked through everywhere.
/// Equal views of the same are the same: functionalization makes them anew after a mutation.
#include "graph/arguments.h"
#include "graph/graph.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::torch_capture {

/// activation(gate) · up, of the two halves of `input`'s last dimension; clamped_swiglu: of its even and odd elements,
/// as graph::ParallelOp::MoeExperts says.
struct GatedActivation {
  std::string_view name;  ///< as in bridge::ExpertsCall
  graph::ValueId input;
  double alpha = 1, limit = 0;
};

class Spelling {
 public:
  explicit Spelling(const graph::Graph& graph) : m_graph(graph) {}

  graph::ValueId behindAliases(graph::ValueId value) const;
  /// The call that computes the value, if it is this operator; else null.
  const graph::Node* call(graph::ValueId value, std::string_view op) const;
  std::uint32_t resultIndex(graph::ValueId value) const;
  bool isParameter(graph::ValueId value) const;
  bool areAlike(graph::ValueId a, graph::ValueId b) const;

  /// What the value is a view of (`view` alone); invalid: it is none.
  graph::ValueId viewed(graph::ValueId value) const;
  /// `table[ids]`, along the first dimension: {table, ids}; invalid ones: it is no such pick.
  std::pair<graph::ValueId, graph::ValueId> picked(graph::ValueId value) const;
  /// What was divided by the number, a positive one, and rounded down; of what is not negative. Invalid: it is not
  /// that.
  graph::ValueId quotient(graph::ValueId value, std::int64_t divisor) const;
  /// The permutation that this one undoes; invalid: not known.
  graph::ValueId inverseOf(graph::ValueId permutation) const;
  /// What stands here `times` times, each row behind itself; invalid: it is not that.
  graph::ValueId repeated(graph::ValueId value, std::int64_t times) const;
  /// The two factors of a product of tensors, in both orders; empty: it is none.
  std::vector<std::pair<graph::ValueId, graph::ValueId>> factors(graph::ValueId value) const;
  std::optional<GatedActivation> gatedActivation(graph::ValueId value) const;

 private:
  bool isHalf(graph::ValueId value, int half, graph::ValueId& whole) const;
  std::pair<std::string_view, graph::ValueId> activation(graph::ValueId value) const;
  std::optional<GatedActivation> clampedSwiglu(graph::ValueId raised, graph::ValueId swish) const;
  /// Every second element of the last dimension, from `first` on, within limits; the whole, and the limits.
  struct Clamped {
    graph::ValueId whole;
    std::optional<double> least, most;
  };
  std::optional<Clamped> clampedEverySecond(graph::ValueId value, std::int64_t first) const;
  /// `value` times a number, and that; nullopt: it is not this product.
  std::optional<double> multipleOf(graph::ValueId value, graph::ValueId of) const;

  const graph::Graph& m_graph;
};

}  // namespace cleave::torch_capture
