#pragma once
/// Finds why parts of a solution are replicated, by solving again. `Optimum::leastTimes` knows for all nodes at once
/// whether any plan splits them.
///
///     ReplicationSearch search(problem, solution, engine, optimum.get());
///     const ReplicationReason reason = search.weight(layer);
///     if (const auto* cannot = std::get_if<Cannot>(&reason)) fmt::print("{}\n", cannot->why);
#include "base/progress.h"
#include "graph/graph.h"
#include "plan/replication_reason.h"
#include "solve/engine.h"

#include <memory>

namespace cleave::plan {

/// The reasons of one solution. Solves again, once for each setting that may be the cause, when the first question
/// needs it. After cancellation, questions that need a search return NotKnown. One thread; the arguments must outlive
/// it.
class ReplicationSearch {
 public:
  /// `optimum` may be null: another engine, or a plan from another program.
  ReplicationSearch(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
                    const solve::Optimum* optimum, const Progress& progress = {});
  ~ReplicationSearch();

  /// The reason for a layer's weight, or for the logits of a loss.
  ReplicationReason weight(graph::NodeId layer);
  /// The reason for the result of any call.
  ReplicationReason work(graph::NodeId node);

 private:
  class Search;
  std::unique_ptr<Search> m_search;
};

}  // namespace cleave::plan
