#pragma once
/// What the canvas knows of a search or plan: the placement of each value, and per module how many of each.
///
/// Follows a search by changes: cost is the changed values times the depth of modules. Counts are of operators' first
/// results, noise left out, so a module's bar shows how its work is split.
#include <array>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "canvas/graph_model.h"
#include "canvas/theme.h"
#include "rules/strategies.h"

namespace cleave::views {

using PlacementSource = std::function<MaybePlacement(graph::ValueId)>;

/// A collective behind (or before) a value.
struct CollectiveBadge {
  rules::CollectiveKind kind = rules::CollectiveKind::AllReduce;
  std::int64_t bytes = 0;
};

struct ModuleTally {
  std::array<std::uint32_t, kTintCount> tints{};
  std::uint32_t collectives = 0;
  std::uint32_t conflicts = 0;
  std::uint32_t total() const;
};

class PlacementBoard {
 public:
  explicit PlacementBoard(const GraphModel& model);

  void reset(const PlacementSource& source);  ///< an empty function: nothing is assigned
  /// Reads these again; true when one changed.
  bool update(std::span<const ValueId> values, const PlacementSource& source);
  void setCollectives(std::unordered_map<std::uint32_t, std::vector<CollectiveBadge>> byValue);  ///< by raw ValueId
  void setConflicts(std::span<const NodeId> nodes);

  const MaybePlacement& of(ValueId value) const { return m_placements[value.index()]; }
  const std::vector<CollectiveBadge>* collectives(ValueId value) const;
  bool isConflict(NodeId node) const { return m_conflicts.contains(node.raw()); }
  const ModuleTally& tally(ModuleId id) const { return m_tallies[id.index()]; }
  /// Of a stack: equal modules `first`..`last` of one list.
  ModuleTally tally(ModuleId first, ModuleId last) const;
  bool isEmpty() const { return m_assigned == 0; }

 private:
  bool counts(ValueId value) const;
  void addToModules(NodeId node, const std::function<void(ModuleTally&)>& add);

  const GraphModel& m_model;
  std::vector<MaybePlacement> m_placements;
  std::vector<ModuleTally> m_tallies;
  std::unordered_map<std::uint32_t, std::vector<CollectiveBadge>> m_collectives;
  std::unordered_set<std::uint32_t> m_conflicts;
  std::size_t m_assigned = 0;
};

}  // namespace cleave::views
