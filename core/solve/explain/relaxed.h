#pragma once
/// Whether some of a problem's nodes can hold together while the others are let go: what a deletion filter over nodes
/// asks.
///
/// A node that is let go (relaxed) may place its results anyhow: as Domains::widened says, which leaves nothing out
/// that a plan could have. So what fails here has no solution. Sources (inputs, constants, parameters that no layer
/// owns) and nodes that a pin speaks of are always kept. Exact over the domains: the kept nodes are taken in
/// topological order, and the placements of values that a later kept node still reads are the state (transformer graphs
/// are narrow). Remembers the rules' answers; one thread.
#include "solve/candidates/domains.h"

namespace cleave::solve {

/// How the operands and results of one node lie in an assignment that every kept node agrees with.
struct Witness {
  std::vector<Placement> reads, writes;  ///< in the order of Variables::reads and writes
};

class Relaxation {
 public:
  /// All must outlive this.
  Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work);

  /// `kept`: by NodeId. Unknown: too many states, a domain that is not known, or the work ended.
  Answer check(const std::vector<bool>& kept);
  /// An assignment of the kept nodes as `observed`, a node that is let go, sees it; nullopt when there is none or it is
  /// not known.
  std::optional<Witness> witness(const std::vector<bool>& kept, NodeId observed);

  /// True for nodes that cannot be let go.
  bool isBackground(NodeId node) const { return m_isBackground[node.index()]; }

 private:
  struct State {
    Words live;                ///< placement ids of the live values, in the order of `m_live`
    std::uint32_t before = 0;  ///< index among the states before the step
  };
  /// One run of the elimination.
  struct Sweep;

  std::uint32_t classOf(NodeId node);

  const Asking m_asking;
  const Variables& m_variables;
  const Graph& m_graph;
  Domains& m_domains;
  CandidateTable& m_table;
  Work& m_work;
  std::vector<bool> m_isBackground;                            ///< by NodeId
  std::unordered_map<std::uint32_t, std::uint32_t> m_classOf;  ///< by raw NodeId: CandidateTable::classOf
};

}  // namespace cleave::solve
