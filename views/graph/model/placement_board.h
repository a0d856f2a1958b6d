#pragma once
/// What the canvas knows of a search or plan: how the graph is split (split_counts.h), for the modules that it draws
/// and with collectives and conflicts.
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "views/graph/model/graph_model.h"
#include "views/graph/model/split_counts.h"

namespace cleave::views {

/// A collective behind (or before) a value.
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
  /// Of the same tree; who owns the counts updates them. Both outlive the board.
  PlacementBoard(const GraphModel& model, const SplitCounts& counts);

  void setCollectives(const std::map<ValueId, std::vector<CollectiveBadge>>& byValue);
  void setConflicts(std::span<const NodeId> nodes);

  const SplitCounts& counts() const { return m_counts; }
  const MaybePlacement& of(ValueId value) const { return m_counts.placement(value); }
  /// What stands at a node as it is drawn: behind its results, and behind the noise that it stands for.
  const std::vector<CollectiveBadge>* collectives(NodeId shown) const;
  bool isConflict(NodeId node) const { return m_conflicts.contains(node.raw()); }
  ModuleTally tally(ModuleId id) const;
  /// Of a stack: equal modules `first`..`last` of one list.
  ModuleTally tally(ModuleId first, ModuleId last) const;
  /// Of a stack whose values and layers are all decided: how many of its modules are split otherwise than the first.
  std::uint32_t unlike(ModuleId first, ModuleId last) const;
  bool isEmpty() const { return m_counts.isEmpty(); }

 private:
  SplitTally splitOf(ModuleId id) const;
  bool isAlike(ModuleId a, ModuleId b) const;
  bool isAlike(NodeId a, NodeId b) const;
  void addToModules(NodeId node, std::vector<std::uint32_t>& counts, std::uint32_t by);

  const GraphModel& m_model;
  const SplitCounts& m_counts;
  std::unordered_map<std::uint32_t, std::vector<NodeId>> m_groups;  ///< what is in modules that are no scope
  std::vector<std::uint32_t> m_collectiveCounts, m_conflictCounts;  ///< by ModuleId
  std::unordered_map<std::uint32_t, std::vector<CollectiveBadge>> m_collectives;  ///< by raw NodeId, of shown nodes
  std::unordered_set<std::uint32_t> m_conflicts;
};

}  // namespace cleave::views
