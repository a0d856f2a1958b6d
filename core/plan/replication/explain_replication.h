#pragma once
/// Explains why parts of a solution are replicated. This query is separate from the plan (build/make_plan.h), because
/// it solves again, once for each setting that may be the cause. It may take longer than the first search.
///
///     const Explanation why = explainReplication(problem, solution, engine, optimum.get(), progress);
///     fmt::print("{}\n", toText(why.weight(layer)));   // text/reason_text.h
#include "base/progress.h"
#include "plan/replication_reason.h"
#include "solve/engine.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace cleave::plan {

/// Reasons by node. The reason of any other node is NotKnown, so an empty explanation has no reasons.
class Explanation {
 public:
  /// The reason for a layer's weight, or for the logits of a loss.
  const ReplicationReason& weight(graph::NodeId layer) const { return of(m_weights, layer); }
  /// The reason for the result of any call.
  const ReplicationReason& work(graph::NodeId node) const { return of(m_work, node); }
  void setWeight(graph::NodeId layer, ReplicationReason reason) { m_weights[layer.raw()] = std::move(reason); }
  void setWork(graph::NodeId node, ReplicationReason reason) { m_work[node.raw()] = std::move(reason); }

 private:
  using Reasons = std::unordered_map<std::uint32_t, ReplicationReason>;
  static const ReplicationReason& of(const Reasons& reasons, graph::NodeId node);
  Reasons m_weights, m_work;
};

/// Explains every layer, the reader of the largest replicated parameters, and every operator with a cost that is
/// replicated. `solution` must have a placement for each value and a strategy for each layer of the problem's graph.
/// `optimum` may be null: another engine, or a plan from another program. After cancellation, reasons that need another
/// search are NotKnown.
Explanation explainReplication(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
                               const solve::Optimum* optimum, const Progress& progress = {});

}  // namespace cleave::plan
