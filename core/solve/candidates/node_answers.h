#pragma once
/// What nodes make of placements, asked once for each structure: nodes that rules and layer options cannot tell apart
/// share their answers. Placements are small integers here. One thread.
#include "solve/candidates/candidates.h"

#include <unordered_map>

namespace cleave::solve {

class NodeAnswers {
 public:
  using PlacementId = std::uint16_t;
  using PlacementIds = std::vector<PlacementId>;
  struct Answered {
    std::vector<PlacementIds> writes;  ///< of each candidate, in the order of Variables::writes; none: a conflict
    /// Conflict: index of the last read that it takes; wherever those behind it lie, it is a conflict.
    std::size_t lastCulprit = 0;
  };

  /// Both must outlive this.
  NodeAnswers(const Problem& problem, const Variables& variables);

  /// `reads`: an id for each of Variables::reads.
  const Answered& of(NodeId node, const std::u16string& reads);
  /// Nodes with equal numbers give equal answers.
  std::uint32_t classOf(NodeId node) const { return m_classOf[node.index()]; }

  PlacementId intern(const Placement& placement);
  const Placement& placement(PlacementId id) const { return m_placements[id]; }

 private:
  void classify();
  Answered ask(NodeId node, const std::u16string& reads);

  const Problem& m_problem;
  const Variables& m_variables;
  std::vector<std::uint32_t> m_classOf;  ///< by NodeId
  std::vector<std::unordered_map<std::u16string, Answered>> m_byClass;
  std::vector<Placement> m_placements;  ///< by id; 0 is R
  std::unordered_map<Placement, PlacementId> m_ids;
};

}  // namespace cleave::solve
