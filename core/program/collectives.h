#pragma once
/// The collectives of a rank program's operators (graph/operators.h describes Cleave's own operators).
#include "graph/graph.h"
#include "rules/strategies.h"

#include <vector>

namespace cleave::program {

/// One collective that an operator performs.
struct Collective {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;  ///< of the whole tensor being reduced, gathered or scattered (not of one rank's part)
  bool operator==(const Collective&) const = default;
};

/// The collectives of a node in the forward pass, in order; empty for most nodes. The collectives that ranks count must
/// equal these. all_reduce and reduce_scatter perform one of x, all_gather one of its result. vocab_cross_entropy
/// performs three all-reduces of N reals each: row maxima (max), sums of exponentials (sum), target logits (sum); the
/// reals are f32, or f64 for f64 logits.
std::vector<Collective> collectivesOf(const graph::Graph& program, graph::NodeId node);

}  // namespace cleave::program
