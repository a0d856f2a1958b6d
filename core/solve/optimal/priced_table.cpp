#include "solve/optimal/priced_table.h"

namespace cleave::solve::optimal {

std::uint32_t PricedTable::classOf(const Pricing& pricing, NodeId node) {
  const std::uint32_t candidates = m_candidates->classOf(pricing.ref(), node);
  m_key.assign({candidates, pricing.model.costClass(node)});
  for (const Read& read : pricing.variables.reads(node)) m_key.push_back(pricing.model.mayShare(read.value));
  const auto next = static_cast<std::uint32_t>(m_classes.size());
  const auto [known, isNew] = m_classes.try_emplace(m_key, next);
  if (isNew) m_candidateClasses.push_back(candidates);
  return known->second;
}

std::uint32_t PricedTable::sharingOf(const Pricing& pricing, ValueId value) {
  if (!pricing.model.mayShare(value)) return 0;
  const auto& v = pricing.problem.graph->value(value);
  m_key.assign({pricing.model.costClass(v.producer), v.resultIndex});
  addType(v.type);
  const auto next = static_cast<std::uint32_t>(m_sharings.size()) + 1;
  return m_sharings.try_emplace(m_key, next).first->second;
}

std::uint32_t PricedTable::holdingOf(const Pricing& pricing, ValueId value) {
  const CostModel::Holding holding = pricing.model.holdingOf(value);
  m_key.assign({holding.isHolder, holding.isPart, static_cast<std::uint32_t>(holding.cutAlong)});
  addNumber(m_key, holding.holderBytes);
  addType(pricing.problem.graph->value(value).type);
  return m_holdings.try_emplace(m_key, static_cast<std::uint32_t>(m_holdings.size())).first->second;
}

void PricedTable::addType(const graph::TensorType& type) {
  m_key.push_back(static_cast<std::uint32_t>(type.dtype));
  for (const std::int64_t size : type.shape) addNumber(m_key, size);
}

std::uint32_t PricedTable::identityOf(std::uint32_t classIndex, const PricedChoice& priced) {
  IdTuple key(priced.writes.begin(), priced.writes.end());
  for (const Placement& placement : priced.choice.computedAs) key.push_back(m_candidates->intern(placement));
  if (const auto& option = priced.choice.strategy) {
    key.push_back(static_cast<std::uint32_t>(option->strategy));
    key.push_back(m_candidates->intern(option->input));
    key.push_back(option->before ? 1 + static_cast<std::uint32_t>(*option->before) : 0);
    key.push_back(option->after ? 1 + static_cast<std::uint32_t>(*option->after) : 0);
  }
  key.push_back(classIndex);
  return m_identities.try_emplace(std::move(key), static_cast<std::uint32_t>(m_identities.size())).first->second;
}

PricedChoice PricedTable::priced(const Pricing& pricing, NodeId node, std::uint32_t classIndex, const CandidateRow& row,
                                 std::size_t ordinal, const std::vector<Placement>& reads) {
  const CostModel& model = pricing.model;
  const Choice& choice = row.open[ordinal];
  PricedChoice priced{.choice = choice, .writes = row.writesOf(ordinal), .cost = model.step(node, choice, reads)};
  priced.femtoseconds = priced.cost.femtoseconds().count();
  priced.bytes = priced.cost.bytes();
  priced.transient = model.leastTransient(node, choice, reads);
  const auto values = pricing.variables.reads(node);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (!model.mayShare(values[i].value)) continue;
    if (const Shares parts = model.needsShared(node, choice, reads, i)) priced.neededShares.emplace_back(i, parts);
  }
  for (std::size_t i = 0; i < priced.writes.size(); ++i) priced.paidShares.push_back(model.paysShared(node, choice, i));
  priced.identity = identityOf(classIndex, priced);
  return priced;
}

std::shared_ptr<const PricedRow> PricedTable::row(const Pricing& pricing, NodeId node, std::uint32_t classIndex,
                                                  std::span<const PlacementId> operands) {
  m_key.assign(operands.begin(), operands.end());
  m_key.push_back(classIndex);
  if (const auto known = m_rows.find(m_key); known != m_rows.end()) return known->second;
  IdTuple key = m_key;
  auto row = std::make_shared<PricedRow>();
  row->row = m_candidates->row(pricing.ref(), node, m_candidateClasses[classIndex], operands);
  const std::vector<Placement> reads = m_candidates->placementsOf(operands);
  row->open.reserve(row->row->open.size());
  for (std::size_t ordinal = 0; ordinal < row->row->open.size(); ++ordinal)
    row->open.push_back(priced(pricing, node, classIndex, *row->row, ordinal, reads));
  m_memoryBytes +=
      sizeof(PricedRow) + row->open.size() * (sizeof(PricedChoice) + 100) + key.size() * sizeof(key[0]) + 64;
  m_rows.emplace(std::move(key), row);
  return row;
}

}  // namespace cleave::solve::optimal
