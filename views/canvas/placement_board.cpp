#include "canvas/placement_board.h"

#include <numeric>

namespace cleave::views {

std::uint32_t ModuleTally::total() const {
  return std::accumulate(tints.begin(), tints.end(), 0u);
}

PlacementBoard::PlacementBoard(const GraphModel& model)
    : m_model(model), m_placements(model.graph().values.size()), m_tallies(model.moduleCount()) {
  reset({});
}

bool PlacementBoard::counts(ValueId value) const {
  const graph::Value& v = m_model.graph().value(value);
  return v.resultIndex == 0 && m_model.graph().node(v.producer).kind == graph::NodeKind::Call &&
         m_model.shownNode(v.producer) == v.producer;
}

void PlacementBoard::addToModules(NodeId node, const std::function<void(ModuleTally&)>& add) {
  for (ModuleId id = m_model.moduleOf(node); id.isValid(); id = m_model.module(id).parent) add(m_tallies[id.index()]);
}

void PlacementBoard::reset(const PlacementSource& source) {
  for (ModuleTally& tally : m_tallies) tally.tints.fill(0);
  m_assigned = 0;
  for (const ValueId v : idRange<ValueId>(m_placements.size())) {
    m_placements[v.index()] = source ? source(v) : std::nullopt;
    m_assigned += m_placements[v.index()].has_value();
    if (!counts(v)) continue;
    const auto tint = static_cast<std::size_t>(tintOf(m_placements[v.index()]));
    for (ModuleId id = m_model.moduleOf(m_model.graph().value(v).producer); id.isValid();
         id = m_model.module(id).parent)
      ++m_tallies[id.index()].tints[tint];
  }
}

bool PlacementBoard::update(std::span<const ValueId> values, const PlacementSource& source) {
  bool changed = false;
  for (const ValueId v : values) {
    MaybePlacement now = source ? source(v) : std::nullopt;
    MaybePlacement& before = m_placements[v.index()];
    if (now == before) continue;
    changed = true;
    m_assigned += now.has_value();
    m_assigned -= before.has_value();
    const auto from = static_cast<std::size_t>(tintOf(before)), to = static_cast<std::size_t>(tintOf(now));
    before = std::move(now);
    if (from == to || !counts(v)) continue;
    for (ModuleId id = m_model.moduleOf(m_model.graph().value(v).producer); id.isValid();
         id = m_model.module(id).parent) {
      --m_tallies[id.index()].tints[from];
      ++m_tallies[id.index()].tints[to];
    }
  }
  return changed;
}

void PlacementBoard::setCollectives(std::unordered_map<std::uint32_t, std::vector<CollectiveBadge>> byValue) {
  m_collectives = std::move(byValue);
  for (ModuleTally& tally : m_tallies) tally.collectives = 0;
  for (const auto& [value, badges] : m_collectives) {
    const auto count = static_cast<std::uint32_t>(badges.size());
    addToModules(m_model.graph().value(ValueId(value)).producer,
                 [count](ModuleTally& tally) { tally.collectives += count; });
  }
}

void PlacementBoard::setConflicts(std::span<const NodeId> nodes) {
  m_conflicts.clear();
  for (ModuleTally& tally : m_tallies) tally.conflicts = 0;
  for (const NodeId node : nodes) {
    const NodeId shown = m_model.shownNode(node);
    if (!shown.isValid() || !m_conflicts.insert(shown.raw()).second) continue;
    addToModules(shown, [](ModuleTally& tally) { ++tally.conflicts; });
  }
}

const std::vector<CollectiveBadge>* PlacementBoard::collectives(ValueId value) const {
  const auto found = m_collectives.find(value.raw());
  return found == m_collectives.end() ? nullptr : &found->second;
}

ModuleTally PlacementBoard::tally(ModuleId first, ModuleId last) const {
  ModuleTally sum = tally(first);
  if (first == last) return sum;
  bool isInside = false;
  for (const Member& member : m_model.module(m_model.module(first).parent).members) {
    if (isInside && member.module.isValid()) {
      const ModuleTally& more = tally(member.module);
      for (int i = 0; i < kTintCount; ++i) sum.tints[i] += more.tints[i];
      sum.collectives += more.collectives;
      sum.conflicts += more.conflicts;
    }
    isInside |= member.module == first;
    if (member.module == last) break;
  }
  return sum;
}

}  // namespace cleave::views
