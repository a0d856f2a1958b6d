#include "solve/candidates/frontier.h"

namespace cleave::solve {

using Origin = FrontierStep::Origin;

void FrontierStep::appendConnections(IdTuple& kind) const {
  kind.insert(kind.end(), {static_cast<std::uint32_t>(before.size()), ownSlot()});
  for (const Operand& operand : operands) kind.insert(kind.end(), {operand.slot, operand.first});
  kind.push_back(static_cast<std::uint32_t>(exits.size()));
  for (const Exit& exit : exits) kind.insert(kind.end(), {static_cast<std::uint32_t>(exit.origin), exit.index});
}

std::vector<std::uint32_t> lastReads(const Variables& variables, std::size_t values, std::span<const NodeId> order) {
  std::vector<std::uint32_t> last(values, 0);
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    for (const Read& read : variables.reads(order[place])) last[read.value.index()] = place + 1;
  }
  return last;
}

Frontier::Frontier(const Variables& variables, std::size_t values, std::vector<NodeId> order)
    : m_variables(variables),
      m_order(std::move(order)),
      m_lastRead(lastReads(variables, values, m_order)),
      m_slotOf(values, kNoSlot) {}

const FrontierStep& Frontier::next(const IsCarried& isCarried, bool hasOwnSlot) {
  m_step.node = m_order[m_stepsDone];
  m_step.before.clear();
  for (const auto& exit : m_step.exits) m_step.before.push_back(exit.value);
  addOperands();
  addExits(isCarried, hasOwnSlot);
  for (const ValueId value : m_step.before) {
    if (value.isValid()) m_slotOf[value.index()] = kNoSlot;
  }
  for (std::uint32_t slot = 0; slot < m_step.exits.size(); ++slot) {
    const ValueId value = m_step.exits[slot].value;
    if (value.isValid()) m_slotOf[value.index()] = slot;
  }
  ++m_stepsDone;
  return m_step;
}

void Frontier::addOperands() {
  const auto reads = m_variables.reads(m_step.node);
  m_step.operands.clear();
  m_step.fresh.clear();
  for (std::uint32_t i = 0; i < reads.size(); ++i) {
    std::uint32_t first = 0;
    while (reads[first].value != reads[i].value) ++first;
    const std::uint32_t slot = m_slotOf[reads[i].value.index()];
    m_step.operands.push_back({reads[i].value, slot, first});
    if (slot == kNoSlot && first == i) m_step.fresh.push_back(i);
  }
}

void Frontier::addExits(const IsCarried& isCarried, bool hasOwnSlot) {
  const auto& before = m_step.before;
  m_step.exits.clear();
  if (hasOwnSlot) m_step.exits.push_back({ValueId(), Origin::Own, 0, kNoSlot});
  for (std::uint32_t slot = 0; slot < before.size(); ++slot) {
    if (before[slot].isValid() && isReadLater(before[slot]))
      m_step.exits.push_back({before[slot], Origin::Slot, slot, kNoSlot});
  }
  for (const std::uint32_t operand : m_step.fresh) {
    const ValueId value = m_step.operands[operand].value;
    if (isReadLater(value) && isCarried(value)) m_step.exits.push_back({value, Origin::Fresh, operand, operand});
  }
  const auto writes = m_variables.writes(m_step.node);
  for (std::uint32_t i = 0; i < writes.size(); ++i) {
    if (writes[i].isValid() && isReadLater(writes[i])) m_step.exits.push_back({writes[i], Origin::Write, i, kNoSlot});
  }
  for (std::uint32_t i = 0; i < m_step.operands.size(); ++i) {
    const auto& operand = m_step.operands[i];
    if (operand.slot == kNoSlot || operand.first != i) continue;
    for (auto& exit : m_step.exits) {
      if (exit.origin == Origin::Slot && exit.index == operand.slot) exit.operand = i;
    }
  }
}

}  // namespace cleave::solve
