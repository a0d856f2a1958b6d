#include "solve/optimal/frontier.h"

#include <algorithm>
#include <numeric>

namespace cleave::solve::optimal {
namespace {

/// Sorts out the steps whose values are R in every plan.
void findFixed(const Pricing& pricing, PricedTable& table, Layout& layout) {
  const Variables& variables = pricing.variables;
  layout.isFixed.assign(pricing.problem.graph->values.size(), false);
  for (const NodeId node : variables.steps()) {
    const auto reads = variables.reads(node);
    const bool isFree =
        variables.layer(node) || variables.redistributes(node) ||
        !std::all_of(reads.begin(), reads.end(), [&](const Read& r) { return layout.isFixed[r.value.index()]; });
    if (isFree) {
      layout.order.push_back(node);
      continue;
    }
    const Words whole(reads.size(), kReplicated);
    auto row = table.row(pricing, node, table.classOf(pricing, node), whole);
    if (row->open.empty()) {
      layout.impossible = node;
      return;
    }
    CLEAVE_CHECK(row->open.size() == 1, "whole operands give one whole result");
    for (const ValueId value : variables.writes(node)) layout.isFixed[value.index()] = true;
    layout.fixed.push_back({node, std::move(row)});
  }
}

std::vector<std::uint32_t> lastReads(const Pricing& pricing, const std::vector<NodeId>& order) {
  std::vector<std::uint32_t> last(pricing.problem.graph->values.size(), 0);
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    for (const Read& read : pricing.variables.reads(order[place])) last[read.value.index()] = place + 1;
  }
  return last;
}

/// Most live values at once, and their sum over all places.
std::pair<std::size_t, std::size_t> widthOf(const Pricing& pricing, const Layout& layout,
                                            const std::vector<NodeId>& order) {
  const auto last = lastReads(pricing, order);
  std::vector<std::uint32_t> endingAt(order.size() + 1, 0);
  std::size_t live = 0, widest = 0, sum = 0;
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    for (const ValueId value : pricing.variables.writes(order[place])) {
      if (!value.isValid() || last[value.index()] <= place + 1 || layout.isFixed[value.index()]) continue;
      ++live;
      ++endingAt[last[value.index()]];
    }
    live -= endingAt[place + 1];
    widest = std::max(widest, live);
    sum += live;
  }
  return {widest, sum};
}

/// Depth first from the outputs: a step comes right after what it alone needs. What no output needs comes last.
std::vector<NodeId> lazyOrder(const Pricing& pricing, const Layout& layout) {
  const Graph& graph = *pricing.problem.graph;
  enum class Mark : std::uint8_t { New, Open, Done };
  std::vector<Mark> marks(graph.nodes.size(), Mark::Done);
  std::vector<NodeId> placedBy(graph.values.size());  // invalid: fixed
  for (const NodeId node : layout.order) {
    marks[node.index()] = Mark::New;
    for (const ValueId value : pricing.variables.writes(node)) {
      if (value.isValid()) placedBy[value.index()] = node;
    }
  }
  std::vector<NodeId> order, stack;
  const auto visit = [&](NodeId root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      Mark& mark = marks[node.index()];
      if (mark != Mark::New) {
        if (mark == Mark::Open) order.push_back(node);
        mark = Mark::Done;
        stack.pop_back();
        continue;
      }
      mark = Mark::Open;
      const auto reads = pricing.variables.reads(node);
      for (std::size_t i = reads.size(); i-- > 0;) {
        const NodeId producer = placedBy[reads[i].value.index()];
        if (producer.isValid() && marks[producer.index()] == Mark::New) stack.push_back(producer);
      }
    }
  };
  for (const auto& output : graph.outputs) visit(pricing.variables.decider(graph.value(output.value).producer));
  for (const NodeId node : layout.order) visit(node);
  return order;
}

}  // namespace

Layout layoutOf(const Pricing& pricing, PricedTable& table) {
  Layout layout;
  findFixed(pricing, table, layout);
  if (layout.impossible.isValid()) return layout;
  auto lazy = lazyOrder(pricing, layout);
  if (widthOf(pricing, layout, lazy).first < widthOf(pricing, layout, layout.order).first)
    layout.order = std::move(lazy);
  layout.isInOrder = std::is_sorted(layout.order.begin(), layout.order.end());
  return layout;
}

Frontier::Frontier(const Pricing& pricing, PricedTable& table, const Layout& layout)
    : m_pricing(pricing),
      m_table(table),
      m_layout(layout),
      m_lastRead(lastReads(pricing, layout.order)),
      m_slotOf(pricing.problem.graph->values.size(), kNoSlot) {
  findBucket();
  findFixedBytes();
}

void Frontier::findFixedBytes() {
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

void Frontier::findBystanders() {
  const CostModel& model = m_pricing.model;
  Place& place = m_next;
  place.bystanders.clear();
  place.fixedBeside = m_fixedBytes[place.node.index()];
  m_holders.clear();
  for (const auto& operand : place.operands) {
    const ValueId holder = model.holderOf(operand.value);
    if (!holder.isValid() || std::find(m_holders.begin(), m_holders.end(), holder) != m_holders.end()) continue;
    m_holders.push_back(holder);
    if (m_layout.isFixed[holder.index()]) place.fixedBeside -= model.heldFor(holder, Placement());
  }
  const std::size_t read = m_holders.size();
  for (std::uint32_t slot = 0; slot < m_slots.size(); ++slot) {
    const ValueId value = m_slots[slot];
    const ValueId holder = value.isValid() ? model.holderOf(value) : ValueId();
    if (!holder.isValid() || m_layout.isFixed[holder.index()]) continue;
    const auto [first, last] = model.lifeOf(holder);
    if (place.node <= first || last < place.node) continue;
    const auto known = std::find(m_holders.begin(), m_holders.end(), holder);
    const auto at = static_cast<std::size_t>(known - m_holders.begin());
    if (at < read) continue;
    if (known == m_holders.end()) m_holders.push_back(holder);
    place.bystanders.push_back(
        {slot, static_cast<std::uint32_t>(at - read), m_table.holdingOf(m_pricing, value), value});
  }
}

void Frontier::findBucket() {
  for (std::uint32_t place = 0; place < m_layout.order.size(); ++place) {
    if (!m_pricing.model.maySumGradients(m_layout.order[place])) continue;
    m_firstSum = std::min(m_firstSum, place);
    m_lastSum = place;
  }
}

const Place& Frontier::next() {
  Place& place = m_next;
  place.operands.clear();
  place.exits.clear();
  m_exitSlots.clear();
  place.node = m_layout.order[m_place];
  place.classIndex = m_table.classOf(m_pricing, place.node);
  const CostModel& model = m_pricing.model;
  const auto reads = m_pricing.variables.reads(place.node);
  const auto isReadLater = [&](ValueId v) { return m_lastRead[v.index()] > m_place + 1; };
  const auto operandOf = [&](ValueId v) {
    for (std::uint32_t i = 0; i < reads.size(); ++i) {
      if (reads[i].value == v) return i;
    }
    return kNoSlot;
  };
  const auto addExit = [&](ValueId value, Place::Origin origin, std::uint32_t index) {
    const bool mayBeCharged = origin != Place::Origin::Write && model.mayShare(value);
    place.exits.push_back({origin, index, mayBeCharged ? operandOf(value) : kNoSlot, mayBeCharged});
    m_exitSlots.push_back(value);
  };
  for (std::uint32_t i = 0; i < reads.size(); ++i) {
    const ValueId value = reads[i].value;
    place.operands.push_back({m_slotOf[value.index()], operandOf(value), value});
  }
  place.bucket = !m_slots.empty() && !m_slots.front().isValid() ? 0 : kNoSlot;
  if (m_firstSum <= m_place && m_place < m_lastSum) {
    place.exits.push_back({Place::Origin::Bucket, 0, kNoSlot, true});
    m_exitSlots.emplace_back();
  }
  for (std::uint32_t i = 0; i < m_slots.size(); ++i) {
    if (m_slots[i].isValid() && isReadLater(m_slots[i])) addExit(m_slots[i], Place::Origin::Slot, i);
  }
  for (std::uint32_t i = 0; i < reads.size(); ++i) {
    const ValueId value = reads[i].value;
    const bool isNew = place.operands[i].slot == kNoSlot && place.operands[i].first == i;
    if (isNew && model.mayShare(value) && isReadLater(value)) addExit(value, Place::Origin::FixedOperand, i);
  }
  const auto writes = m_pricing.variables.writes(place.node);
  for (std::uint32_t i = 0; i < writes.size(); ++i) {
    if (writes[i].isValid() && isReadLater(writes[i])) addExit(writes[i], Place::Origin::Write, i);
  }
  findBystanders();
  nameKind();
  for (const ValueId value : m_slots) {
    if (value.isValid()) m_slotOf[value.index()] = kNoSlot;
  }
  for (std::uint32_t i = 0; i < m_exitSlots.size(); ++i) {
    if (m_exitSlots[i].isValid()) m_slotOf[m_exitSlots[i].index()] = i;
  }
  std::swap(m_slots, m_exitSlots);
  ++m_place;
  return place;
}

void Frontier::nameKind() {
  Words& kind = m_next.kind;
  kind.assign({m_next.classIndex, static_cast<std::uint32_t>(m_slots.size()), m_next.bucket, m_layout.isInOrder});
  for (const auto& operand : m_next.operands) {
    kind.insert(kind.end(), {operand.slot, operand.first, m_table.sharingOf(m_pricing, operand.value)});
  }
  for (const auto& bystander : m_next.bystanders)
    kind.insert(kind.end(), {bystander.slot, bystander.memory, bystander.holding});
  addNumber(kind, m_next.fixedBeside);
  for (const auto& exit : m_next.exits) {
    kind.insert(kind.end(), {static_cast<std::uint32_t>(exit.origin), exit.index, exit.operand, exit.mayBeCharged});
  }
}

}  // namespace cleave::solve::optimal
