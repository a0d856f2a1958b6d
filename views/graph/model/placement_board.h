#pragma once
/// The canvas's view of a search or plan: how the graph is split (split_counts.h) for the drawn modules, with
/// collectives and conflicts.
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "views/graph/model/graph_model.h"
#include "views/graph/model/split_counts.h"

namespace cleave::views {

/// A collective after (or before) a value.
struct CollectiveBadge {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;
};

struct ModuleTally {
  SplitTally split;
  std::uint32_t collectives = 0;
  std::uint32_t conflicts = 0;
};

class PlacementBoard {
 public:
  /// For counts of the same tree. Their owner updates them. Both outlive the board.
  PlacementBoard(const GraphModel& model, const SplitCounts& counts);

  void setCollectives(const std::map<ValueId, std::vector<CollectiveBadge>>& byValue);
  void setConflicts(std::span<const NodeId> nodes);

  const SplitCounts& counts() const { return m_counts; }
  const MaybePlacement& of(ValueId value) const { return m_counts.placement(value); }
  /// The collectives drawn at a node: after its results, and after the noise drawn as part of it.
  const std::vector<CollectiveBadge>* collectives(NodeId shown) const;
  bool isConflict(NodeId node) const { return m_conflicts.contains(node.raw()); }
  ModuleTally tally(ModuleId id) const;
  /// The tally of a stack of equal modules `first`..`last` of one list.
  ModuleTally tally(ModuleId first, ModuleId last) const;
  /// For a stack whose values and layers are all decided: the number of its modules that are split differently from the
  /// first.
  std::uint32_t unlike(ModuleId first, ModuleId last) const;
  bool isEmpty() const { return m_counts.isEmpty(); }

 private:
  SplitTally splitOf(ModuleId id) const;
  bool isAlike(ModuleId a, ModuleId b) const;
  bool isAlike(NodeId a, NodeId b) const;
  void addToModules(NodeId node, std::vector<std::uint32_t>& counts, std::uint32_t by);

  const GraphModel& m_model;
  const SplitCounts& m_counts;
  std::unordered_map<std::uint32_t, std::vector<NodeId>> m_groups;  ///< nodes in modules that are not scopes
  std::vector<std::uint32_t> m_collectiveCounts, m_conflictCounts;  ///< by ModuleId
  std::unordered_map<std::uint32_t, std::vector<CollectiveBadge>> m_collectives;  ///< by raw NodeId, of shown nodes
  std::unordered_set<std::uint32_t> m_conflicts;
};

}  // namespace cleave::views
