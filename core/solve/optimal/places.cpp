#include "solve/optimal/places.h"

#include <algorithm>
#include <numeric>

namespace cleave::solve::optimal {

Places::Places(const Pricing& pricing, PricedTable& table, const Layout& layout)
    : m_pricing(pricing),
      m_table(table),
      m_layout(layout),
      m_frontier(pricing.variables, pricing.problem.graph->values.size(), layout.order) {
  findBucket();
  findFixedBytes();
}

void Places::findFixedBytes() {
  const Graph& graph = *m_pricing.problem.graph;
  m_fixedBytes.assign(graph.nodes.size() + 1, 0);
  for (const auto& fixed : m_layout.fixed) {
    for (const ValueId value : graph.node(fixed.node).results) {
      if (m_pricing.model.holderOf(value) != value) continue;
      const auto [first, last] = m_pricing.model.lifeOf(value);
      const std::int64_t bytes = m_pricing.model.heldFor(value, Placement());
      m_fixedBytes[first.index()] += bytes;
      m_fixedBytes[last.index() + 1] -= bytes;
    }
  }
  std::partial_sum(m_fixedBytes.begin(), m_fixedBytes.end(), m_fixedBytes.begin());
}

void Places::findUnreadSlots() {
  const CostModel& model = m_pricing.model;
  const FrontierStep& step = m_next.step;
  m_next.unreadSlots.clear();
  m_next.unreadFixedBytes = m_fixedBytes[step.node.index()];
  m_holders.clear();
  for (const auto& operand : step.operands) {
    const ValueId holder = model.holderOf(operand.value);
    if (!holder.isValid() || std::find(m_holders.begin(), m_holders.end(), holder) != m_holders.end()) continue;
    m_holders.push_back(holder);
    if (m_layout.isFixed[holder.index()]) m_next.unreadFixedBytes -= model.heldFor(holder, Placement());
  }
  const std::size_t read = m_holders.size();
  for (std::uint32_t slot = 0; slot < step.before.size(); ++slot) {
    const ValueId value = step.before[slot];
    const ValueId holder = value.isValid() ? model.holderOf(value) : ValueId();
    if (!holder.isValid() || m_layout.isFixed[holder.index()]) continue;
    const auto [first, last] = model.lifeOf(holder);
    if (step.node <= first || last < step.node) continue;
    const auto known = std::find(m_holders.begin(), m_holders.end(), holder);
    const auto at = static_cast<std::size_t>(known - m_holders.begin());
    if (at < read) continue;
    if (known == m_holders.end()) m_holders.push_back(holder);
    m_next.unreadSlots.push_back(
        {slot, static_cast<std::uint32_t>(at - read), m_table.holdingOf(m_pricing, value), value});
  }
}

void Places::findBucket() {
  for (std::uint32_t place = 0; place < m_layout.order.size(); ++place) {
    if (!m_pricing.model.maySumGradients(m_layout.order[place])) continue;
    m_firstSum = std::min(m_firstSum, place);
    m_lastSum = place;
  }
}

const Place& Places::next() {
  const bool hasBucket = m_firstSum <= m_place && m_place < m_lastSum;
  m_frontier.next([&](ValueId value) { return m_pricing.model.mayShare(value); }, hasBucket);
  m_next.isInOrder = m_layout.isInOrder;
  m_next.classIndex = m_table.classOf(m_pricing, m_next.step.node);
  findUnreadSlots();
  setKind();
  ++m_place;
  return m_next;
}

void Places::setKind() {
  IdTuple& kind = m_next.kind;
  kind.assign({m_next.classIndex, m_next.isInOrder, static_cast<std::uint32_t>(m_next.unreadSlots.size())});
  m_next.step.appendConnections(kind);
  for (const auto& operand : m_next.step.operands) kind.push_back(m_table.sharingOf(m_pricing, operand.value));
  for (const auto& unread : m_next.unreadSlots) kind.insert(kind.end(), {unread.slot, unread.memory, unread.holding});
  addNumber(kind, m_next.unreadFixedBytes);
}

}  // namespace cleave::solve::optimal
