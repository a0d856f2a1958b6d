#include "views/graph/view/colors.h"

#include <string_view>
#include <unordered_map>
#include <utility>

namespace cleave::views {

void Colors::make(const GraphModel& model, const SplitCounts& counts, std::span<const NodeId> conflicts) {
  m_model = &model;
  m_board = std::make_unique<PlacementBoard>(model, counts);
  m_board->setCollectives(m_collectives);
  m_board->setConflicts(conflicts);
  makeHeat();
}

void Colors::drop() {
  m_heat.reset();
  m_board.reset();
  m_model = nullptr;
}

void Colors::forgetGraph() {
  m_collectives.clear();
  m_amounts.clear();
}

bool Colors::setPlan(const plan::Plan* plan, const graph::Graph* graph) {
  if (!plan && m_collectives.empty()) return false;
  m_collectives.clear();
  if (plan && graph) {
    std::unordered_map<std::string_view, ValueId> byName;
    for (const ValueId v : idRange<ValueId>(graph->values.size())) byName.emplace(graph->value(v).name, v);
    for (const plan::CollectivePlan& collective : plan->collectives)
      if (const auto value = byName.find(collective.after); value != byName.end())
        m_collectives[value->second].push_back({collective.kind, collective.bytes});
  }
  if (m_board) m_board->setCollectives(m_collectives);
  return true;
}

void Colors::setConflicts(std::span<const NodeId> nodes) {
  if (m_board) m_board->setConflicts(nodes);
}

bool Colors::setAmounts(ColorBy what, HeatAmounts amounts, HeatGaps gaps, const QString& note) {
  const bool isOther = std::exchange(m_by, what) != what;
  m_amounts = std::move(amounts);
  m_gaps = std::move(gaps);
  m_note = note;
  makeHeat();
  return isOther;
}

void Colors::makeHeat() {
  m_heat.reset();
  if (m_model && isHeat(m_by)) m_heat = std::make_unique<HeatField>(*m_model, m_by, m_amounts, m_gaps);
}

HeatScale Colors::scale() const {
  if (!m_heat) return {};
  HeatScale scale{colorTitle(m_by), {}, m_note};
  if (m_by == ColorBy::Error && m_note.isEmpty()) {
    for (const Agreement agreement : {Agreement::Equal, Agreement::Within, Agreement::Beyond})
      scale.ticks << agreementName(agreement);
    scale.isAgreement = true;
    scale.note = QStringLiteral("dashed: not compared  ·  folded boxes show the maximum");
    return scale;
  }
  const QString negative = m_heat->hasNegative() ? QStringLiteral("−: faster, but needs more memory  ·  ") : QString();
  if (m_note.isEmpty() && m_heat->isEmpty()) scale.note = negative + QStringLiteral("all amounts are zero");
  if (!scale.note.isEmpty()) return scale;
  for (const double at : {0.0, 0.5, 1.0}) scale.ticks << m_heat->text(m_heat->amountAt(at));
  scale.note = negative + (m_heat->isSum() ? QStringLiteral("folded boxes show the sum (Σ)")
                                           : QStringLiteral("folded boxes show the maximum"));
  return scale;
}

}  // namespace cleave::views
