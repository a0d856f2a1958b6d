#include "views/graph/view/graph_view.h"

#include <algorithm>

#include "plan/text/shares_text.h"
#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"

namespace cleave::views {

namespace {
constexpr int kFlashMs = 150;
}  // namespace

GraphView::GraphView(QWidget* parent) : GraphView(LayoutHelper::find(), parent) {}

GraphView::GraphView(LayoutHelper helper, QWidget* parent)
    : QAbstractScrollArea(parent), m_layouter(std::move(helper)), m_theme(Theme::of(palette())) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(QStringLiteral("Graph"));
  setAccessibleDescription(QStringLiteral("Arrows follow edges, Enter unfolds, plus and minus zoom, 0 shows all"));
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  viewport()->grabGesture(Qt::PinchGesture);
  makeMetrics();
  m_legend = new Legend(this);
  m_minimap = new Minimap(this, [this](QPainter& painter, double zoom) {
    if (!m_scene) return;
    const PaintStyle style = paintStyle();
    ScenePainter(style, *m_scene, zoom).paintOverview(painter);
  });
  setTheme(m_theme);
  m_hasOwnTheme = false;
  fitStrips();
  m_flashTimer.setSingleShot(true);
  m_flashTimer.setInterval(kFlashMs);
  connect(&m_flashTimer, &QTimer::timeout, this, [this] {
    m_flash.clear();
    viewport()->update();
  });
  connect(&m_layouter, &Layouter::answered, this, &GraphView::retry);
  connect(&m_layouter, &Layouter::helperFailed, this, &GraphView::message);
  connect(m_legend, &Legend::heightChanged, this, [this] { growStrips(); });
  connect(m_legend, &Legend::filterChanged, this, [this] {
    m_stale = viewport()->rect();
    m_minimap->refresh();
    viewport()->update();
  });
  connect(m_minimap, &Minimap::moved, this, [this](const QPointF& center) {
    m_isFitted = false;
    panBy(QPointF(viewport()->rect().center()) - toView(center));
  });
}

GraphView::~GraphView() = default;

/// Everything drawn scales with the user's font size. The default size is 100 %.
void GraphView::makeMetrics() {
  constexpr double kUsualPixels = 12;
  m_metrics = std::make_unique<Metrics>(QFontInfo(font()).pixelSize() / kUsualPixels, font());
}

// ---- content

void GraphView::setSplits(std::shared_ptr<const SplitCounts> splits) {
  m_layouter.cancel();
  m_splits = std::move(splits);
  m_folds = {};
  m_followed.clear();
  m_selection = {};
  m_current = {};
  m_conflicts.clear(), m_breakpoints.clear(), m_searchHits.clear(), m_changed.clear(), m_flash.clear(),
      m_collectives.clear();
  m_amounts.clear();
  makeModel();
  fitStrips();
}

void GraphView::makeModel() {
  m_hovered = SceneItem::kNone;
  m_hoveredHub = {};
  m_links.reset();
  m_scene.reset();
  m_heat.reset();
  m_board.reset();
  m_labels.reset();
  m_model.reset();
  m_minimap->setScene({});
  if (m_splits) {
    m_model = std::make_unique<GraphModel>(makeGraphModel(m_splits->sharedTree(), m_modelOptions));
    m_labels = std::make_unique<Labels>(*m_model, *m_metrics);
    m_board = std::make_unique<PlacementBoard>(*m_model, *m_splits);
    m_board->setCollectives(m_collectives);
    m_board->setConflicts(m_conflicts);
    makeHeat();
    rebuild({Arrival::Kind::Fit, {}, {}, {}});
  }
  recount();
  m_stale = viewport()->rect();
  viewport()->update();
}

void GraphView::setHelpersFolded(bool folded) {
  if (folded == m_modelOptions.foldNoise) return;
  m_modelOptions.foldNoise = folded;
  std::vector<ScopeId> open = expandedScopes();  // module ids change with the model, scopes stay
  const Selection selection = m_selection;
  m_folds = {};
  makeModel();
  if (!m_model) return;
  FoldState folds;
  for (const ScopeId scope : open)
    openAncestors(m_model->moduleOf(scope), folds), folds.open.insert(m_model->moduleOf(scope));
  folds.open.erase(m_model->root());
  setFolds(std::move(folds), {Arrival::Kind::Show, {}, selection.node, {}});
  m_selection = {selection.node, {}, selection.output};
}

void GraphView::showSplits() {
  if (!m_board) return;
  recount();
  m_stale = viewport()->rect();
  m_minimap->refresh();
  viewport()->update();
}

void GraphView::showSplits(std::span<const NodeId> changed) {
  if (!m_board || changed.empty()) return;
  recount();
  m_minimap->refresh();
  if (!m_scene) return;
  std::vector<std::uint32_t> items;
  const auto addItem = [&](std::uint32_t item) {
    if (item != SceneItem::kNone) items.push_back(item);
  };
  const auto add = [&](NodeId node) { addItem(m_scene->itemOf(*m_model, node)); };
  std::vector<bool> isChanged(graph()->nodes.size(), false);
  for (const NodeId node : changed) {
    isChanged[node.index()] = true;
    const auto& results = graph()->node(node).results;
    if (std::any_of(results.begin(), results.end(), [this](ValueId v) { return m_model->isHub(v); })) {
      m_stale = viewport()->rect();  // its chips may be anywhere
      return viewport()->update();
    }
    add(node);
    // Skipped helpers are drawn with their inputs, and count at the boxes that show them.
    if (const ScopeId scope = graph()->node(node).scope; scope.index() < graph()->scopes.size())
      addItem(m_scene->itemOf(*m_model, m_model->moduleOf(scope)));
    const auto kind = graph()->node(node).kind;
    const bool isDocked = kind == graph::NodeKind::Parameter || kind == graph::NodeKind::Constant;
    for (const ValueId result : results)  // a layer shows its input placements, and a parameter's readers show the
                                          // parameter
      for (const NodeId reader : m_model->readers(m_model->source(result)))
        if (isDocked || m_splits->isLayer(reader)) add(reader);
  }
  for (std::size_t i = 0; i < graph()->outputs.size(); ++i)
    if (isChanged[graph()->value(graph()->outputs[i].value).producer.index()])
      addItem(m_scene->outputItem(static_cast<int>(i)));
  repaintItems(items);
}

/// Marks a box and the headers and blocks of all frames around it as stale. The region refers to the picture painted so
/// far, because the view may move back before the next paint.
void GraphView::repaintItems(std::span<const std::uint32_t> items) {
  const QRect all = viewport()->rect();
  if (m_baseZoom != m_zoom) {
    m_stale = all;
    return viewport()->update();
  }
  const QPoint moved = (m_offset - m_baseOffset).toPoint();
  const QRect reach = all.united(all.translated(moved));
  QRegion region;
  for (std::uint32_t i : items) {
    while (i != SceneItem::kNone) {
      const SceneItem& item = m_scene->items()[i];
      QRectF rect = viewRect(item);
      if (item.kind == ItemKind::Frame && rect.height() > 160) rect.setHeight(m_metrics->header * m_zoom + 2);
      const QRect dirty = rect.adjusted(-12, -12, 12, 28 * m_zoom + 2).toAlignedRect().intersected(reach);
      if (!dirty.isEmpty()) region += dirty;
      i = item.parent;
    }
    if (region.rectCount() > 200) region = region.boundingRect();
  }
  if (region.isEmpty()) return;
  m_stale += region.translated(-moved);
  viewport()->update(region);
}

void GraphView::setPlan(const plan::Plan* plan) {
  if (!plan && m_collectives.empty()) return;
  m_collectives.clear();
  if (plan && m_splits) {
    std::unordered_map<std::string_view, ValueId> byName;
    for (const ValueId v : idRange<ValueId>(graph()->values.size())) byName.emplace(graph()->value(v).name, v);
    for (const plan::CollectivePlan& collective : plan->collectives)
      if (const auto value = byName.find(collective.after); value != byName.end())
        m_collectives[value->second].push_back({collective.kind, collective.bytes});
  }
  if (m_board) m_board->setCollectives(m_collectives);
  m_stale = viewport()->rect();
  viewport()->update();
}

void GraphView::setTheme(const Theme& theme) {
  m_hasOwnTheme = true;
  m_theme = theme;
  m_legend->setTheme(theme);
  m_minimap->setTheme(theme);
  m_stale = viewport()->rect();
  viewport()->update();
}

void GraphView::recount() {
  LegendContent content = m_legend->content();
  setCounts(content, m_splits.get());
  content.changed = m_changed.size();
  m_legend->setContent(content);
}

void GraphView::updateStatus() {
  QStringList parts;
  if (m_isBuilding) parts << QStringLiteral("laying out …");
  if (m_scene && m_scene->isSimplified()) parts << QStringLiteral("simplified layout");
  if (m_scene) parts << percentText(m_zoom);
  if (m_model && m_model->noiseCount() > 0)
    parts << QStringLiteral("%1 folded").arg(countedText(m_model->noiseCount(), QStringLiteral("helper")));
  m_legend->setStatus(parts.join(QStringLiteral("  ·  ")));
}

// ---- building

void GraphView::setFolds(FoldState folds, Arrival arrival) {
  m_followed.clear();
  m_folds = std::move(folds);
  rebuild(arrival);
  emit expandedChanged();
}

void GraphView::rebuild(Arrival arrival) {
  if (arrival.kind != Arrival::Kind::Stay) m_arrival = arrival;
  const bool wasBuilding = std::exchange(m_isBuilding, true);
  retry();
  if (m_isBuilding && !wasBuilding) emit readyChanged(false);
  updateStatus();
}

void GraphView::retry() {
  if (!m_isBuilding || !m_model) return;
  auto scene = makeScene(*m_model, m_folds, *m_labels,
                         [this](const LayoutRequest& request) { return m_layouter.find(request); });
  if (!scene) return;
  m_scene = std::move(scene);
  m_links.reset();
  m_hovered = SceneItem::kNone;
  m_hoveredHub = {};
  m_isBuilding = false;
  arrive();
  m_stale = viewport()->rect();
  m_minimap->setScene(m_scene->bounds());
  updateStatus();
  viewport()->update();
  emit readyChanged(true);
}

void GraphView::arrive() {
  const Arrival arrival = std::exchange(m_arrival, {});
  switch (arrival.kind) {
    case Arrival::Kind::Stay: break;
    case Arrival::Kind::Fit: fit(); break;
    case Arrival::Kind::Readable: fitReadable(); break;
    case Arrival::Kind::Anchor: {
      m_isFitted = false;
      const auto item = m_scene->itemOf(*m_model, arrival.module);
      if (item == SceneItem::kNone) break;
      const QPointF now = toView(m_scene->items()[item].rect.topLeft());
      const QPointF by = arrival.position - now;
      m_offset += QPointF(qRound(by.x()), qRound(by.y()));
      if (!viewRect(m_scene->items()[item]).intersects(viewport()->rect())) fit();
      break;
    }
    case Arrival::Kind::Show:
      showItem(arrival.node.isValid() ? m_scene->itemOf(*m_model, arrival.node)
                                      : m_scene->itemOf(*m_model, arrival.module));
      m_isFitted = false;
      break;
  }
  keepInReach();
  m_minimap->setView(visibleArea());
}

// ---- folding

ScopeId GraphView::scopeOf(ModuleId module) const {
  while (module.isValid() && !m_model->module(module).scope.isValid()) module = m_model->module(module).parent;
  return module.isValid() ? m_model->module(module).scope : ScopeId();
}

void GraphView::openAncestors(ModuleId module, FoldState& folds) const {
  for (const ModuleId id : m_model->pathTo(module)) {
    folds.loose.insert(id);
    if (id != module) folds.open.insert(id);
  }
}

void GraphView::toggle(std::uint32_t index, bool asList) {
  const SceneItem item = m_scene->items()[index];
  if (!item.module.isValid()) return;
  FoldState folds = m_folds;
  const Arrival arrival{Arrival::Kind::Anchor, item.module, {}, toView(item.rect.topLeft())};
  if (item.kind == ItemKind::Stack && asList) {
    bool isInside = false;
    for (const Member& member : m_model->module(m_model->module(item.module).parent).members) {
      isInside |= member.module == item.module;
      if (isInside && member.module.isValid()) folds.loose.insert(member.module);
      if (member.module == item.lastModule) break;
    }
  } else if (folds.isOpen(item.module)) {
    folds.open.erase(item.module);
    folds.loose.erase(item.module);  // back into its stack
  } else {
    folds.loose.insert(item.module);
    folds.open.insert(item.module);
  }
  setFolds(std::move(folds), arrival);
}

/// All modules that came from the scope or from inside it, outermost only.
void GraphView::collectIn(ScopeId scope, std::vector<ModuleId>& modules) const {
  const std::string prefix = graph()->scope(scope).path + ".";
  for (const ModuleId id : idRange<ModuleId>(m_model->moduleCount())) {
    const Module& module = m_model->module(id);
    if (module.scope.isValid() && graph()->scope(module.scope).path.starts_with(prefix) &&
        module.parent == m_model->moduleOf(scope))
      modules.push_back(id);
  }
}

void GraphView::expand(ScopeId scope) {
  if (!m_model || scope.index() >= graph()->scopes.size()) return;
  const ModuleId module = m_model->moduleOf(scope);
  FoldState folds = m_folds;
  openAncestors(module, folds);
  if (m_model->module(module).scope == scope && module != m_model->root()) {
    folds.open.insert(module);
  } else if (!m_model->inlinedNode(scope)) {  // a dissolved list
    std::vector<ModuleId> children;
    collectIn(scope, children);
    folds.loose.insert(children.begin(), children.end());
  }
  Arrival arrival{Arrival::Kind::Show, module, {}, {}};
  const auto item = m_scene ? m_scene->itemOf(*m_model, module) : SceneItem::kNone;
  if (item != SceneItem::kNone && viewRect(m_scene->items()[item]).intersects(viewport()->rect()))
    arrival = {Arrival::Kind::Anchor, module, {}, toView(m_scene->items()[item].rect.topLeft())};
  setFolds(std::move(folds), arrival);
}

void GraphView::collapse(ScopeId scope) {
  if (!m_model || scope.index() >= graph()->scopes.size()) return;
  const ModuleId module = m_model->moduleOf(scope);
  FoldState folds = m_folds;
  std::vector<ModuleId> gone{module};
  if (m_model->module(module).scope != scope) gone.clear(), collectIn(scope, gone);
  for (const ModuleId id : gone) folds.open.erase(id), folds.loose.erase(id);
  const auto item = m_scene ? m_scene->itemOf(*m_model, module) : SceneItem::kNone;
  Arrival arrival{Arrival::Kind::Stay, {}, {}, {}};
  if (item != SceneItem::kNone)
    arrival = {Arrival::Kind::Anchor, module, {}, toView(m_scene->items()[item].rect.topLeft())};
  setFolds(std::move(folds), arrival);
}

bool GraphView::isExpanded(ScopeId scope) const {
  if (!m_model || scope.index() >= graph()->scopes.size()) return false;
  const ModuleId module = m_model->moduleOf(scope);
  return m_model->module(module).scope == scope && (module == m_model->root() || m_folds.isOpen(module));
}

void GraphView::expandAll() {
  if (!m_model) return;
  FoldState folds;
  for (const ModuleId id : idRange<ModuleId>(m_model->moduleCount())) {
    if (id == m_model->root()) continue;
    folds.loose.insert(id);
    if (m_model->module(id).kind == ModuleKind::Scope) folds.open.insert(id);
  }
  setFolds(std::move(folds), {Arrival::Kind::Readable, {}, {}, {}});
}

void GraphView::collapseAll() {
  if (m_model) setFolds({}, {Arrival::Kind::Fit, {}, {}, {}});
}

std::vector<ScopeId> GraphView::expandedScopes() const {
  std::vector<ScopeId> scopes;
  if (!m_model) return scopes;
  for (const ModuleId id : m_folds.open)
    if (m_model->module(id).scope.isValid()) scopes.push_back(m_model->module(id).scope);
  std::sort(scopes.begin(), scopes.end());
  return scopes;
}

// ---- selection

void GraphView::selectValue(ValueId value) {
  if (!m_model || !value.isValid() || value.index() >= graph()->values.size()) return select({}, false);
  select({m_model->shownNode(graph()->value(value).producer), {}, -1}, false);
}

void GraphView::selectNode(NodeId node) {
  const bool isKnown = m_model && node.isValid() && node.index() < graph()->nodes.size();
  select({isKnown ? m_model->shownNode(node) : NodeId(), {}, -1}, false);
}

void GraphView::selectScope(ScopeId scope) {
  if (!m_model || !scope.isValid() || scope.index() >= graph()->scopes.size()) return select({}, false);
  if (const auto node = m_model->inlinedNode(scope)) return select({*node, {}, -1}, false);
  const ModuleId module = m_model->moduleOf(scope);
  select({{}, module == m_model->root() ? ModuleId() : module, -1}, false);
}

void GraphView::select(Selection selection, bool isByUser) {
  const bool isNew = selection != m_selection;
  m_selection = selection;
  viewport()->update();
  if (isNew) emit breadcrumbChanged(breadcrumb());
  if (!isByUser) return;
  if (selection.node.isValid())
    emit nodeClicked(selection.node);
  else if (selection.module.isValid())
    emit scopeClicked(scopeOf(selection.module));
  else if (selection.output >= 0)
    emit nodeClicked(graph()->value(graph()->outputs[static_cast<std::size_t>(selection.output)].value).producer);
  else
    emit selectionCleared();
}

std::uint32_t GraphView::selectedItem() const {
  if (!m_scene) return SceneItem::kNone;
  if (m_selection.node.isValid()) return m_scene->itemOf(*m_model, m_selection.node);
  if (m_selection.output >= 0) return m_scene->outputItem(m_selection.output);
  return m_scene->itemOf(*m_model, m_selection.module);
}

QStringList GraphView::breadcrumb() const {
  QStringList path{m_splits ? QString::fromStdString(graph()->name.empty() ? "model" : graph()->name) : QString()};
  if (!m_model) return path;
  const ModuleId module = m_selection.node.isValid() ? m_model->moduleOf(m_selection.node) : m_selection.module;
  if (module.isValid())
    for (const ModuleId id : m_model->pathTo(module)) path << QString::fromStdString(m_model->module(id).title);
  if (m_selection.node.isValid()) {
    const Trimmings& trimmings = m_model->trimmings(m_selection.node);
    path << (trimmings.tail.empty() ? m_labels->node(m_selection.node).title : QString::fromStdString(trimmings.tail));
  }
  return path;
}

}  // namespace cleave::views
