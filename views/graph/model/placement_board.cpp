#include "views/graph/model/placement_board.h"

#include <algorithm>

namespace cleave::views {

PlacementBoard::PlacementBoard(const GraphModel& model, const SplitCounts& counts)
    : m_model(model),
      m_counts(counts),
      m_collectiveCounts(model.moduleCount(), 0),
      m_conflictCounts(model.moduleCount(), 0) {
  for (const NodeId node : idRange<NodeId>(model.graph().nodes.size())) {
    if (model.shownNode(node) != node) continue;
    // A module that contains moved operators counts as part of its outermost group. Groups do not nest otherwise.
    ModuleId group;
    for (ModuleId id = model.moduleOf(node); id.isValid(); id = model.module(id).parent)
      if (model.module(id).kind != ModuleKind::Scope) group = id;
    if (group.isValid()) m_groups[group.raw()].push_back(node);
  }
}

SplitTally PlacementBoard::splitOf(ModuleId id) const {
  const Module& module = m_model.module(id);
  if (module.kind == ModuleKind::Scope) return id == m_model.root() ? m_counts.whole() : m_counts.of(module.scope);
  const auto group = m_groups.find(id.raw());
  return group == m_groups.end() ? SplitTally() : m_counts.of(group->second);
}

ModuleTally PlacementBoard::tally(ModuleId id) const {
  return {splitOf(id), m_collectiveCounts[id.index()], m_conflictCounts[id.index()]};
}

void PlacementBoard::addToModules(NodeId node, std::vector<std::uint32_t>& counts, std::uint32_t by) {
  for (ModuleId id = m_model.moduleOf(node); id.isValid(); id = m_model.module(id).parent) counts[id.index()] += by;
}

void PlacementBoard::setCollectives(const std::map<ValueId, std::vector<CollectiveBadge>>& byValue) {
  m_collectives.clear();
  m_collectiveCounts.assign(m_model.moduleCount(), 0);
  for (const auto& [value, badges] : byValue) {
    const NodeId shown = m_model.shownNode(m_model.graph().value(value).producer);
    if (!shown.isValid()) continue;
    auto& drawn = m_collectives[shown.raw()];
    drawn.insert(drawn.end(), badges.begin(), badges.end());
    addToModules(shown, m_collectiveCounts, static_cast<std::uint32_t>(badges.size()));
  }
}

void PlacementBoard::setConflicts(std::span<const NodeId> nodes) {
  m_conflicts.clear();
  m_conflictCounts.assign(m_model.moduleCount(), 0);
  for (const NodeId node : nodes) {
    const NodeId shown = m_model.shownNode(node);
    if (shown.isValid() && m_conflicts.insert(shown.raw()).second) addToModules(shown, m_conflictCounts, 1);
  }
}

const std::vector<CollectiveBadge>* PlacementBoard::collectives(NodeId shown) const {
  const auto found = m_collectives.find(shown.raw());
  return found == m_collectives.end() ? nullptr : &found->second;
}

bool PlacementBoard::isAlike(NodeId a, NodeId b) const {
  const auto& first = m_model.graph().node(a).results;
  const auto& second = m_model.graph().node(b).results;
  return m_counts.split(a) == m_counts.split(b) && m_counts.strategy(a) == m_counts.strategy(b) &&
         std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [this](ValueId x, ValueId y) { return m_counts.placement(x) == m_counts.placement(y); });
}

bool PlacementBoard::isAlike(ModuleId a, ModuleId b) const {
  const auto& first = m_model.module(a).members;
  const auto& second = m_model.module(b).members;
  return std::equal(first.begin(), first.end(), second.begin(), second.end(), [this](const Member& x, const Member& y) {
    if (x.module.isValid() != y.module.isValid() || x.node.isValid() != y.node.isValid()) return false;
    return x.module.isValid() ? isAlike(x.module, y.module) : !x.node.isValid() || isAlike(x.node, y.node);
  });
}

std::uint32_t PlacementBoard::unlike(ModuleId first, ModuleId last) const {
  const SplitTally split = tally(first, last).split;
  const bool isOpen =
      split.work.of(LayerSplit::Open).layers > 0 || split.values[static_cast<std::size_t>(Tint::Unassigned)] > 0;
  if (first == last || isOpen) return 0;
  std::uint32_t count = 0;
  bool isInside = false;
  for (const Member& member : m_model.module(m_model.module(first).parent).members) {
    if (isInside && member.module.isValid() && !isAlike(first, member.module)) ++count;
    isInside |= member.module == first;
    if (member.module == last) break;
  }
  return count;
}

ModuleTally PlacementBoard::tally(ModuleId first, ModuleId last) const {
  ModuleTally sum = tally(first);
  if (first == last) return sum;
  const TreeItemId stack = m_model.tree().stackOf(m_model.module(first).scope, m_model.module(last).scope);
  bool isInside = false;
  for (const Member& member : m_model.module(m_model.module(first).parent).members) {
    if (isInside && member.module.isValid()) {
      if (!stack.isValid()) sum.split += splitOf(member.module);
      sum.collectives += m_collectiveCounts[member.module.index()];
      sum.conflicts += m_conflictCounts[member.module.index()];
    }
    isInside |= member.module == first;
    if (member.module == last) break;
  }
  if (stack.isValid()) sum.split = m_counts.of(stack);
  return sum;
}

}  // namespace cleave::views
