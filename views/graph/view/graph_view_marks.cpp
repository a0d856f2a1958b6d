// Marks over the picture that need no new layout: amounts, changes, conflicts, steps, hits.
#include "views/graph/view/graph_view.h"
#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"

namespace cleave::views {

namespace {
constexpr std::size_t kMostFlashes = 64;
}  // namespace

void GraphView::setConflictNodes(std::vector<NodeId> nodes) {
  if (nodes == m_conflicts) return;
  std::vector<std::uint32_t> items;
  if (m_scene)
    for (const auto* list : {&m_conflicts, &nodes})
      for (const NodeId n : *list)
        if (const auto item = m_scene->itemOf(*m_model, n); item != SceneItem::kNone) items.push_back(item);
  m_conflicts = std::move(nodes);
  if (m_board) m_board->setConflicts(m_conflicts);
  recount();
  if (m_scene) repaintItems(items);
}

void GraphView::setColorBy(ColorBy what, HeatAmounts amounts, const QString& note, HeatGaps gaps) {
  const bool isOtherScale = std::exchange(m_colorBy, what) != what;
  m_amounts = std::move(amounts);
  m_gaps = std::move(gaps);
  m_heatNote = note;
  makeHeat();
  if (isOtherScale) growStrips(true);
  m_stale = viewport()->rect();
  m_minimap->refresh();
  viewport()->update();
}

void GraphView::makeHeat() {
  m_heat.reset();
  if (m_model && isHeat(m_colorBy)) m_heat = std::make_unique<HeatField>(*m_model, m_colorBy, m_amounts, m_gaps);
  LegendContent content = m_legend->content();
  content.scale = {};
  if (!m_heat) return m_legend->setContent(content);
  HeatScale scale{colorTitle(m_colorBy), {}, m_heatNote};
  if (m_colorBy == ColorBy::Error && m_heatNote.isEmpty()) {
    for (const Agreement agreement : {Agreement::Equal, Agreement::Within, Agreement::Beyond})
      scale.ticks << agreementName(agreement);
    scale.isAgreement = true;
    scale.note = QStringLiteral("dashed: not compared  ·  folded boxes show the maximum");
    content.scale = scale;
    return m_legend->setContent(content);
  }
  const QString negative = m_heat->hasNegative() ? QStringLiteral("−: faster, but needs more memory  ·  ") : QString();
  if (m_heatNote.isEmpty() && m_heat->isEmpty()) scale.note = negative + QStringLiteral("all amounts are zero");
  if (scale.note.isEmpty()) {
    for (const double at : {0.0, 0.5, 1.0}) scale.ticks << m_heat->text(m_heat->amountAt(at));
    scale.note = m_heat->isSum() ? QStringLiteral("folded boxes show the sum (Σ)")
                                 : QStringLiteral("folded boxes show the maximum");
    scale.note = negative + scale.note;
  }
  content.scale = scale;
  m_legend->setContent(content);
}

void GraphView::setChangedNodes(std::vector<NodeId> nodes) {
  m_changed = std::move(nodes);
  recount();
  viewport()->update();
}

void GraphView::setCurrentNode(NodeId node) {
  m_current = node;
  viewport()->update();
}

void GraphView::flash(std::vector<NodeId> nodes, bool isUndone) {
  if (nodes.size() > kMostFlashes) nodes.clear();  // a jump instead of a step: too many boxes would flash
  m_flash = std::move(nodes);
  m_isFlashUndone = isUndone;
  if (!m_flash.empty()) m_flashTimer.start();
  viewport()->update();
}

void GraphView::setBreakpoints(std::vector<NodeId> nodes) {
  m_breakpoints = std::move(nodes);
  viewport()->update();
}

void GraphView::setSearchHits(std::vector<NodeId> nodes) {
  m_searchHits = std::move(nodes);
  viewport()->update();
}

}  // namespace cleave::views
