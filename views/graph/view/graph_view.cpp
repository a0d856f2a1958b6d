#include "views/graph/view/graph_view.h"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <utility>

#include "views/base/quantities.h"
#include "views/graph/view/item_tip.h"
#include "views/graph/view/next_box.h"
#include "views/graph/view/stale_boxes.h"
#include "views/graph/view/whole_picture.h"

namespace cleave::views {

GraphView::GraphView(QWidget* parent) : GraphView(LayoutHelper::find(), parent) {}

GraphView::GraphView(LayoutHelper helper, QWidget* parent)
    : ZoomArea(parent),
      m_drawn(font()),
      m_layouter(std::move(helper)),
      m_theme(Theme::of(palette())),
      m_strips(this, [this](QPainter& painter, double zoom) {
        if (!scene()) return;
        const PaintStyle style = paintStyle();
        ScenePainter(style, *scene(), zoom).paintOverview(painter);
      }) {
  setAccessibleName(QStringLiteral("Graph"));
  setAccessibleDescription(QStringLiteral("Arrows follow edges, Enter unfolds, plus and minus zoom, 0 shows all"));
  m_strips.setTheme(m_theme);
  fitStrips();
  connect(this, &ZoomArea::zoomChanged, this, &GraphView::updateStatus);
  connect(&m_marks, &Marks::changed, this, [this] { viewport()->update(); });
  connect(&m_layouter, &Layouter::answered, this, &GraphView::retry);
  connect(&m_layouter, &Layouter::helperFailed, this, &GraphView::message);
  connect(&m_strips.legend(), &Legend::heightChanged, this, [this] { growStrips(false); });
  connect(&m_strips.legend(), &Legend::filterChanged, this, [this] {
    m_strips.minimap().refresh();
    repaintAll();
  });
  connect(&m_strips.minimap(), &Minimap::moved, this, [this](const QPointF& center) {
    const QPointF middle = viewport()->rect().center();
    changeView([&](Viewport& view) { view.panBy(middle - view.toView(center)); });
  });
}

// ---- content

void GraphView::setSplits(std::shared_ptr<const SplitCounts> splits) {
  m_layouter.cancel();
  m_colors.drop();
  m_colors.forgetGraph();
  m_drawn.setSplits(std::move(splits));
  m_folds.collapseAll();
  m_selected = {};
  m_marks.clear();
  makeModel();
  fitStrips();
}

void GraphView::makeModel() {
  m_hover = {};
  m_colors.drop();
  setContent(std::nullopt);
  m_strips.minimap().setScene({});
  m_drawn.make();
  if (model()) {
    m_colors.make(*model(), *m_drawn.splits(), m_marks.conflicts());
    m_strips.setScale(m_colors.scale());
    rebuild({Arrival::Kind::Fit});
  }
  recount();
  repaintAll();
}

void GraphView::setHelpersFolded(bool folded) {
  if (folded == areHelpersFolded()) return;
  const std::vector<ScopeId> open = expandedScopes();  // module ids change with the model, scopes stay
  m_drawn.setHelpersFolded(folded);
  m_folds.collapseAll();
  m_selected.module = {};
  makeModel();
  if (!model()) return;
  m_folds.open(*model(), open);
  refold(Arrival::show(m_selected.node));
}

void GraphView::showSplits() {
  if (!model()) return;
  recount();
  m_strips.minimap().refresh();
  repaintAll();
}

void GraphView::showSplits(std::span<const NodeId> changed) {
  if (!model() || changed.empty()) return;
  recount();
  m_strips.minimap().refresh();
  if (!scene()) return;
  if (const auto items = itemsShowing(m_drawn, changed))
    repaintItems(*items);
  else
    repaintAll();
}

void GraphView::repaintItems(std::span<const std::uint32_t> items) {
  const auto reach = cachedReach();
  if (!reach) return repaintAll();
  const QRegion region = regionOf(m_drawn, items, view(), *reach);
  if (!region.isEmpty()) repaintPart(region);
}

// ---- colours and marks

void GraphView::setPlan(const plan::Plan* plan) {
  if (m_colors.setPlan(plan, graph())) repaintAll();
}

void GraphView::setColorBy(ColorBy what, HeatAmounts amounts, const QString& note, HeatGaps gaps) {
  const bool isOtherScale = m_colors.setAmounts(what, std::move(amounts), std::move(gaps), note);
  m_strips.setScale(m_colors.scale());
  if (isOtherScale) growStrips(true);
  m_strips.minimap().refresh();
  repaintAll();
}

void GraphView::setTheme(const Theme& theme) {
  m_hasOwnTheme = true;
  m_theme = theme;
  m_strips.setTheme(theme);
  repaintAll();
}

void GraphView::setChangedNodes(std::vector<NodeId> nodes) {
  m_marks.setDifferent(std::move(nodes));
  recount();
}

void GraphView::setConflictNodes(std::vector<NodeId> nodes) {
  const std::vector<NodeId> touched = m_marks.setConflicts(std::move(nodes));
  if (touched.empty()) return;
  m_colors.setConflicts(m_marks.conflicts());
  recount();
  if (!scene()) return;
  std::vector<std::uint32_t> items;
  for (const NodeId node : touched) items.push_back(m_drawn.itemOf(node));
  repaintItems(items);
}

void GraphView::recount() { m_strips.setCounts(m_drawn.splits(), m_marks.different().size()); }

void GraphView::updateStatus() {
  QStringList parts;
  if (m_isBuilding) parts << QStringLiteral("laying out …");
  if (scene() && scene()->isSimplified()) parts << QStringLiteral("simplified layout");
  if (scene()) parts << percentText(zoom());
  if (model() && model()->noiseCount() > 0)
    parts << QStringLiteral("%1 folded").arg(countedText(model()->noiseCount(), QStringLiteral("helper")));
  m_strips.legend().setStatus(parts.join(QStringLiteral("  ·  ")));
}

// ---- building

void GraphView::refold(const Arrival& arrival) {
  rebuild(arrival);
  emit expandedChanged();
}

void GraphView::rebuild(const Arrival& arrival) {
  if (arrival.kind != Arrival::Kind::Stay) m_arrival = arrival;
  const bool wasBuilding = std::exchange(m_isBuilding, true);
  retry();
  if (m_isBuilding && !wasBuilding) emit readyChanged(false);
  updateStatus();
}

void GraphView::retry() {
  const auto layouts = [this](const LayoutRequest& request) { return m_layouter.find(request); };
  if (!m_isBuilding || !m_drawn.makeScene(m_folds.state(), layouts)) return;
  m_hover = {};
  m_isBuilding = false;
  setContent(scene()->bounds().size());
  const Arrival arrival = std::exchange(m_arrival, {});
  changeView([&](Viewport& view) { arrival.moveTo(m_drawn, view, selectedRect()); });
  m_strips.minimap().setScene(scene()->bounds());
  updateStatus();
  repaintAll();
  emit readyChanged(true);
}

// ---- folding

/// Scrolls to a node or module: now, or with the scene of new folds.
void GraphView::goTo(bool areFoldsNew, const Arrival& arrival) {
  if (!scene() || m_isBuilding || areFoldsNew) return refold(arrival);
  const std::uint32_t index = arrival.item(m_drawn);
  if (index != SceneItem::kNone) changeView([&](Viewport& view) { view.show(item(index).rect); });
}

void GraphView::reveal(NodeId node) {
  const NodeId shown = m_drawn.standIn(node);
  if (shown.isValid()) goTo(m_folds.reveal(*model(), shown), Arrival::show(shown));
}

void GraphView::reveal(ScopeId scope) {
  if (!m_drawn.has(scope)) return;
  if (const auto node = model()->inlinedNode(scope)) return reveal(*node);
  const ModuleId module = model()->moduleOf(scope);
  goTo(m_folds.reveal(*model(), module), Arrival::show(module));
}

void GraphView::follow(NodeId node) {
  const NodeId shown = m_drawn.standIn(node);
  if (shown.isValid()) goTo(m_folds.follow(*model(), shown), Arrival::show(shown));
}

void GraphView::toggle(std::uint32_t index, bool asList) {
  const SceneItem& box = item(index);
  if (!box.module.isValid()) return;
  m_folds.toggle(*model(), box, asList);
  refold({Arrival::Kind::Anchor, box.module, {}, viewRect(box).topLeft()});
}

void GraphView::expand(ScopeId scope) {
  if (!m_drawn.has(scope)) return;
  const ModuleId module = model()->moduleOf(scope);
  const std::uint32_t index = m_drawn.itemOf(module);
  const bool isVisible = index != SceneItem::kNone && view().shows(item(index).rect);
  m_folds.expand(*model(), scope);
  refold(isVisible ? Arrival::anchor(m_drawn, view(), module) : Arrival::show(module));
}

void GraphView::collapse(ScopeId scope) {
  if (!m_drawn.has(scope)) return;
  m_folds.collapse(*model(), scope);
  refold(Arrival::anchor(m_drawn, view(), model()->moduleOf(scope)));
}

bool GraphView::isExpanded(ScopeId scope) const { return m_drawn.has(scope) && m_folds.isExpanded(*model(), scope); }

void GraphView::expandAll() {
  if (!model()) return;
  m_folds.expandAll(*model());
  refold({Arrival::Kind::Readable});
}

void GraphView::collapseAll() {
  if (!model()) return;
  m_folds.collapseAll();
  refold({Arrival::Kind::Fit});
}

std::vector<ScopeId> GraphView::expandedScopes() const {
  return model() ? m_folds.expandedScopes(*model()) : std::vector<ScopeId>();
}

// ---- selection

void GraphView::select(const SelectedBox& box, bool isByUser) {
  const bool isNew = box != m_selected;
  m_selected = box;
  viewport()->update();
  if (isNew) emit breadcrumbChanged(breadcrumb(m_drawn, box));
  if (!isByUser) return;
  if (box.node.isValid())
    emit nodeClicked(box.node);
  else if (box.module.isValid())
    emit scopeClicked(m_drawn.scopeOf(box.module));
  else if (box.output >= 0)
    emit nodeClicked(graph()->value(graph()->outputs[static_cast<std::size_t>(box.output)].value).producer);
  else
    emit selectionCleared();
}

void GraphView::setHover(const Hover& hover) {
  if (hover == m_hover) return;
  m_hover = hover;
  viewport()->setCursor(hover.hub.isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
  viewport()->update();
  if (!scene()) return;
  const SceneItem over = hover.item == SceneItem::kNone ? SceneItem() : item(hover.item);
  emit hovered(over.node, m_drawn.scopeOf(over.module));
}

void GraphView::walk(Qt::Key arrow) {
  const std::uint32_t to = nextBox(*scene(), m_drawn.links(), itemOf(m_drawn, m_selected), arrow);
  if (to == SceneItem::kNone) return;
  changeView([&](Viewport& view) { view.scrollIntoView(item(to).rect); });
  select(SelectedBox::of(item(to)), true);
}

// ---- view

void GraphView::viewMoved() { m_strips.minimap().setView(visibleArea()); }

void GraphView::fitReadable() {
  changeView([this](Viewport& view) { view.fitReadable(selectedRect()); });
}

QRectF GraphView::selectedRect() const {
  const std::uint32_t selected = itemOf(m_drawn, m_selected);
  return selected == SceneItem::kNone ? QRectF() : item(selected).rect;
}

void GraphView::placeStrips() {
  setMinimumHeight(m_strips.leastHeight());
  setMargins(m_strips.margins(width()));
  m_strips.place(size());
}

void GraphView::fitStrips() {
  m_strips.grow(m_strips.missingHeight(width()));
  placeStrips();
}

/// Entries of the legend appear and disappear with each step. A row once used stays reserved until the colours mean
/// something else, and a new row overlaps the picture, so that the picture does not move under the pointer.
void GraphView::growStrips(bool mayShrink) {
  const int by = m_strips.missingHeight(width());
  if (by == 0 || (by < 0 && !mayShrink)) return;
  const bool wasStill = view().isStill();
  setStill(true);
  changeView([by](Viewport& view) { view.shift({0, -static_cast<double>(by)}); });
  m_strips.grow(by);
  placeStrips();
  setStill(wasStill);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  if (m_strips.legend().width() != width())
    fitStrips();
  else
    placeStrips();
  ZoomArea::resizeEvent(event);
}

void GraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && !m_hasOwnTheme) {
    setTheme(Theme::of(palette()));
    m_hasOwnTheme = false;
  }
  if (event->type() == QEvent::FontChange) {
    m_drawn.setFont(font());
    makeModel();
    fitStrips();
  }
  QAbstractScrollArea::changeEvent(event);
}

// ---- input

void GraphView::hoverAt(const QPointF& world) {
  const std::uint32_t index = scene()->itemAt(world);
  const HubLabel* hub =
      index == SceneItem::kNone ? nullptr : ScenePainter::chipAt(item(index), m_drawn.labels(), world);
  setHover({index, hub ? hub->value : ValueId()});
}

void GraphView::clickAt(const QPointF& world, Qt::KeyboardModifiers modifiers) {
  constexpr double kSlack = 3;  // world pixels around a button
  m_ledTo = NodeId();
  const std::uint32_t index = scene()->itemAt(world);
  if (index == SceneItem::kNone) return select({}, true);
  const SceneItem clicked = item(index);
  if (const HubLabel* hub = ScenePainter::chipAt(clicked, m_drawn.labels(), world); hub && !hub->isMade) {
    const NodeId producer = graph()->value(hub->value).producer;
    if (model()->shownNode(producer).isValid()) reveal(producer);
    m_ledTo = producer;
    return select({producer, {}, -1}, true);
  }
  const auto isOn = [&](const QRectF& button) {
    return button.adjusted(-kSlack, -kSlack, kSlack, kSlack).contains(world);
  };
  if (isOn(ScenePainter::listButton(clicked, metrics()))) return toggle(index, true);
  if (isOn(ScenePainter::foldButton(clicked, metrics()))) return toggle(index, modifiers & Qt::ShiftModifier);
  const bool isContent = clicked.kind == ItemKind::Frame && !ScenePainter::header(clicked, metrics()).contains(world);
  select(isContent && zoom() > 0.3 ? SelectedBox() : SelectedBox::of(clicked), true);
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !scene()) return;
  // The first click of this double click went to another place, so the second one is not meant for the box now under
  // the pointer.
  if (m_ledTo.isValid()) return emit nodeActivated(m_ledTo);
  const QPointF world = view().toWorld(event->pos());
  const std::uint32_t index = scene()->itemAt(world);
  if (index == SceneItem::kNone) return fit();
  const SceneItem& box = item(index);
  if (ScenePainter::foldButton(box, metrics()).contains(world))
    return mousePressEvent(event);  // two quick clicks on the button
  if (box.node.isValid())
    emit nodeActivated(box.node);
  else if (box.kind != ItemKind::Frame || ScenePainter::header(box, metrics()).contains(world))
    toggle(index, false);
}

bool GraphView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QPointF world = view().toWorld(help->pos());
    const std::uint32_t index = scene() ? scene()->itemAt(world) : SceneItem::kNone;
    const QString text = index == SceneItem::kNone ? QString() : itemTip(m_drawn, m_colors, index, world);
    text.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), text, viewport());
    return true;
  }
  if (event->type() == QEvent::Leave) setHover({});
  return ZoomArea::viewportEvent(event);
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  if (!scene()) return;
  const bool isByMouse = event->reason() == QContextMenuEvent::Mouse;
  const std::uint32_t index = isByMouse ? scene()->itemAt(view().toWorld(event->pos())) : itemOf(m_drawn, m_selected);
  if (index == SceneItem::kNone) return emit contextMenuRequested(event->globalPos(), NodeId(), ScopeId());
  const SceneItem box = item(index);  // selecting may change the scene
  select(SelectedBox::of(box), true);
  const ScopeId scope = box.module.isValid() ? m_drawn.scopeOf(box.module)
                        : box.node.isValid() ? graph()->node(box.node).scope
                                             : ScopeId(0);
  const QPoint middle = viewport()->mapToGlobal(viewRect(box).center().toPoint());
  emit contextMenuRequested(isByMouse ? event->globalPos() : middle, box.node, scope);
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  const std::uint32_t selected = itemOf(m_drawn, m_selected);
  switch (event->key()) {
    case Qt::Key_N: return setHelpersFolded(!areHelpersFolded());
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
      if (scene() && event->modifiers() == Qt::NoModifier) return walk(static_cast<Qt::Key>(event->key()));
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (selected == SceneItem::kNone) break;
      if (m_selected.module.isValid())
        toggle(selected, event->modifiers() & Qt::ShiftModifier);
      else if (m_selected.node.isValid())
        emit nodeActivated(m_selected.node);
      return;
    case Qt::Key_Backspace:  // to the module around the selection
      if (selected == SceneItem::kNone || item(selected).parent == SceneItem::kNone) break;
      return select({{}, item(item(selected).parent).module, -1}, true);
    default: break;
  }
  ZoomArea::keyPressEvent(event);
}

// ---- paint

PaintStyle GraphView::paintStyle() const {
  return {model(), board(), model() ? &m_drawn.labels() : nullptr, m_theme, m_strips.legend().filter(), heat()};
}

void GraphView::paintPart(QPainter& painter, const QRect& part) {
  const PaintStyle style = paintStyle();
  const QRectF world(view().toWorld(part.topLeft()), QSizeF(part.size()) / zoom());
  painter.fillRect(part, m_theme.ground);
  painter.translate(view().offset());
  painter.scale(zoom(), zoom());
  ScenePainter(style, *scene(), zoom()).paint(painter, world.adjusted(-1, -1, 1, 1));
}

void GraphView::paintMarks(QPainter& painter) {
  const PaintStyle style = paintStyle();
  MarksPainter(style, m_drawn, zoom(), visibleArea()).paint(painter, m_marks, m_hover, m_selected);
}

void GraphView::paintEmpty(QPainter& painter) {
  painter.fillRect(viewport()->rect(), m_theme.ground);
  painter.setPen(m_theme.textQuiet);
  const QString text =
      graph() ? QStringLiteral("Laying out the graph …")
              : QStringLiteral("The model's graph appears here.\nOpen a model folder, or drop one on the window.");
  painter.drawText(viewport()->rect(), Qt::AlignCenter, text);
}

// ---- pictures

QSizeF GraphView::pictureSize() const {
  if (!scene()) return {};
  const PaintStyle style = paintStyle();
  return WholePicture(style, m_drawn, m_strips.legend().content()).size();
}

void GraphView::paintPicture(QPainter& painter, const QRectF& area, double zoom) {
  if (!scene()) return;
  const PaintStyle style = paintStyle();
  const WholePicture picture(style, m_drawn, m_strips.legend().content());
  picture.paint(painter, area, zoom, m_marks, m_hover, m_selected);
}

}  // namespace cleave::views
