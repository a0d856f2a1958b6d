// Mouse, wheel and keys of the canvas, and the position of the view.
#include <QGestureEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QNativeGestureEvent>
#include <QPinchGesture>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/graph_view.h"
#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"

namespace cleave::views {
namespace {

constexpr double kMaxZoom = 6, kKeyZoom = 1.25, kMaxFit = 1, kLeastReadable = 0.2;
constexpr int kLeastPicture = 96, kLeastWidthWithMinimap = 440;
constexpr int kMinimapWidth = 96, kMargin = 40, kReach = 80;  // pixels of the picture that always stay in the window

}  // namespace

// ---- view

void GraphView::placeStrips() {
  // In a small window the picture gets all available room.
  const bool hasMinimap = width() >= kLeastWidthWithMinimap;
  setMinimumHeight(m_stripHeight + kLeastPicture);
  setViewportMargins(0, m_stripHeight, hasMinimap ? kMinimapWidth : 0, 0);
  m_minimap->setVisible(hasMinimap);
  m_legend->setGeometry(0, 0, width(), m_stripHeight);
  m_minimap->setGeometry(width() - kMinimapWidth, m_stripHeight, kMinimapWidth, std::max(0, height() - m_stripHeight));
}

void GraphView::fitStrips() {
  m_stripHeight = m_legend->heightForWidth(width());
  placeStrips();
}

/// Entries of the legend appear and disappear with each step. A row once used stays reserved until the colours mean
/// something else, and a new row overlaps the picture, so that the picture does not move under the pointer.
void GraphView::growStrips(bool mayShrink) {
  const int by = m_legend->heightForWidth(width()) - m_stripHeight;
  if (by == 0 || (by < 0 && !mayShrink)) return;
  const bool wasStill = std::exchange(m_isStill, true);
  m_offset.ry() -= by;
  m_stripHeight += by;
  placeStrips();
  m_isStill = wasStill;
}

void GraphView::resizeEvent(QResizeEvent*) {
  if (m_legend->width() != width())
    fitStrips();
  else
    placeStrips();
  if (!m_isStill) {
    if (m_isFitted && m_scene) fit();
    keepInReach();
  }
  m_stale = viewport()->rect();
  m_minimap->setView(visibleArea());
}

void GraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && !m_hasOwnTheme) {
    setTheme(Theme::of(palette()));
    m_hasOwnTheme = false;
  }
  if (event->type() == QEvent::FontChange && m_legend) {
    makeMetrics();
    makeModel();
    fitStrips();
  }
  QAbstractScrollArea::changeEvent(event);
}

QRectF GraphView::visibleArea() const { return {toWorld({0, 0}), QSizeF(viewport()->size()) / m_zoom}; }

QRectF GraphView::viewRect(const SceneItem& item) const {
  return {toView(item.rect.topLeft()), item.rect.size() * m_zoom};
}

void GraphView::fit() {
  if (!m_scene) return;
  const QSizeF scene = m_scene->bounds().size(), view = viewport()->size();
  if (scene.isEmpty() || view.isEmpty()) return;
  m_zoom = std::clamp(std::min(view.width() / scene.width(), view.height() / scene.height()), 1e-4, kMaxFit);
  const QPointF middle((view.width() - scene.width() * m_zoom) / 2, (view.height() - scene.height() * m_zoom) / 2);
  m_offset = QPointF(std::round(middle.x()), std::round(middle.y()));
  m_isFitted = true;
  m_stale = viewport()->rect();
  m_minimap->setView(visibleArea());
  updateStatus();
  viewport()->update();
  emit zoomChanged(m_zoom);
}

void GraphView::fitReadable() {
  fit();
  if (!m_scene || m_zoom >= kLeastReadable) return;
  const double across = viewport()->width() / std::max(1.0, m_scene->bounds().width());
  zoomAt(std::clamp(across, kLeastReadable, kMaxFit), {});
  m_offset = QPointF(std::round((viewport()->width() - m_scene->bounds().width() * m_zoom) / 2), 0);
  keepInReach();
  if (const std::uint32_t selected = selectedItem(); selected != SceneItem::kNone)
    scrollIntoView(m_scene->items()[selected].rect);
  m_stale = viewport()->rect();
  m_minimap->setView(visibleArea());
}

void GraphView::zoomTo(double zoom) { zoomAt(zoom, QRectF(viewport()->rect()).center()); }

void GraphView::zoomAt(double zoom, const QPointF& view) {
  if (!m_scene) return;
  const QSizeF scene = m_scene->bounds().size();
  const double fitting = std::min(viewport()->width() / std::max(1.0, scene.width()),
                                  viewport()->height() / std::max(1.0, scene.height()));
  zoom = std::clamp(zoom, std::min(0.5 * fitting, 0.25), kMaxZoom);
  const QPointF world = toWorld(view);
  m_zoom = zoom;
  const QPointF offset = view - world * zoom;
  m_offset = QPointF(std::round(offset.x()), std::round(offset.y()));
  m_isFitted = false;
  keepInReach();
  m_minimap->setView(visibleArea());
  updateStatus();
  viewport()->update();
  emit zoomChanged(m_zoom);
}

void GraphView::panBy(const QPointF& by) {
  m_offset += QPointF(std::round(by.x()), std::round(by.y()));
  m_isFitted = false;
  keepInReach();
  m_minimap->setView(visibleArea());
  viewport()->update();
}

/// Part of the picture always stays in the window.
void GraphView::keepInReach() {
  if (!m_scene) return;
  const QSizeF size = m_scene->bounds().size() * m_zoom;
  const auto bound = [](double at, double length, int room) {
    const double reach = std::min<double>(kReach, length);
    return std::round(std::clamp(at, reach - length, std::max(reach - length, room - reach)));
  };
  m_offset = QPointF(bound(m_offset.x(), size.width(), viewport()->width()),
                     bound(m_offset.y(), size.height(), viewport()->height()));
}

/// Moves the picture by the smallest amount. A distant item moves to the middle.
void GraphView::scrollIntoView(const QRectF& world) {
  const QRectF at(toView(world.topLeft()), world.size() * m_zoom);
  const QRectF view = QRectF(viewport()->rect()).adjusted(kMargin, kMargin, -kMargin, -kMargin);
  const auto shift = [](double from, double to, double low, double high) {
    if (to - from > high - low) return from >= low && from < (low + high) / 2 ? 0 : low - from;  // from its header on
    const double by = from < low ? low - from : to > high ? high - to : 0;
    return std::abs(by) < high - low ? by : (low + high - from - to) / 2;
  };
  const QPointF by(shift(at.left(), at.right(), view.left(), view.right()),
                   shift(at.top(), at.bottom(), view.top(), view.bottom()));
  if (!by.isNull()) panBy(by);
}

// ---- mouse

bool GraphView::viewportEvent(QEvent* event) {
  switch (event->type()) {
    case QEvent::ToolTip: {
      const auto* help = static_cast<QHelpEvent*>(event);
      const QPointF world = toWorld(help->pos());
      const std::uint32_t item = m_scene ? m_scene->itemAt(world) : SceneItem::kNone;
      const QString text = item == SceneItem::kNone ? QString() : tooltip(item, world);
      if (text.isEmpty())
        QToolTip::hideText();
      else
        QToolTip::showText(help->globalPos(), text, viewport());
      return true;
    }
    case QEvent::Leave: setHovered(SceneItem::kNone, {}); break;
    case QEvent::Gesture: {
      auto* gesture = static_cast<QGestureEvent*>(event);
      if (auto* pinch = static_cast<QPinchGesture*>(gesture->gesture(Qt::PinchGesture))) {
        zoomAt(m_zoom * pinch->scaleFactor(), viewport()->mapFromGlobal(pinch->centerPoint().toPoint()));
        gesture->accept(pinch);
        return true;
      }
      break;
    }
    case QEvent::NativeGesture: {
      auto* gesture = static_cast<QNativeGestureEvent*>(event);
      if (gesture->gestureType() != Qt::ZoomNativeGesture) break;
      zoomAt(m_zoom * (1 + gesture->value()), gesture->position());
      return true;
    }
    default: break;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void GraphView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  m_pressedAt = event->pos();
  m_draggedFrom = m_offset;
  m_isPressed = true;
  m_isDragging = event->button() == Qt::MiddleButton;
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  if (m_isPressed) {
    if (!m_isDragging && (event->pos() - m_pressedAt).manhattanLength() > 5) {
      m_isDragging = true;
      viewport()->setCursor(Qt::ClosedHandCursor);
    }
    if (m_isDragging) panBy(m_draggedFrom + QPointF(event->pos() - m_pressedAt) - m_offset);
    return;
  }
  if (!m_scene) return;
  const QPointF world = toWorld(event->pos());
  const std::uint32_t item = m_scene->itemAt(world);
  const HubLabel* hub =
      item == SceneItem::kNone ? nullptr : ScenePainter::chipAt(m_scene->items()[item], *m_labels, world);
  setHovered(item, hub ? hub->value : ValueId());
}

void GraphView::setHovered(std::uint32_t item, ValueId hub) {
  if (item == m_hovered && hub == m_hoveredHub) return;
  m_hovered = item;
  m_hoveredHub = hub;
  viewport()->setCursor(hub.isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
  viewport()->update();
  if (!m_scene) return;
  const SceneItem* hovered = item == SceneItem::kNone ? nullptr : &m_scene->items()[item];
  emit this->hovered(hovered ? hovered->node : NodeId(),
                     hovered && hovered->module.isValid() ? scopeOf(hovered->module) : ScopeId());
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  const bool wasClick = m_isPressed && !m_isDragging && event->button() == Qt::LeftButton;
  m_isPressed = m_isDragging = false;
  viewport()->setCursor(Qt::ArrowCursor);
  if (!wasClick || !m_scene) return;
  const QPointF world = toWorld(event->pos());
  click(m_scene->itemAt(world), world, event->modifiers());
}

void GraphView::click(std::uint32_t index, const QPointF& world, Qt::KeyboardModifiers modifiers) {
  m_ledTo = NodeId();
  if (index == SceneItem::kNone) return select({}, true);
  const SceneItem item = m_scene->items()[index];
  if (const HubLabel* hub = ScenePainter::chipAt(item, *m_labels, world); hub && !hub->isMade) {
    const NodeId producer = graph()->value(hub->value).producer;
    if (m_model->shownNode(producer).isValid()) reveal(producer);
    m_ledTo = producer;
    return select({producer, {}, -1}, true);
  }
  const double slack = 3;
  if (ScenePainter::listButton(item, *m_metrics).adjusted(-slack, -slack, slack, slack).contains(world))
    return toggle(index, true);
  if (ScenePainter::foldButton(item, *m_metrics).adjusted(-slack, -slack, slack, slack).contains(world))
    return toggle(index, modifiers & Qt::ShiftModifier);
  if (item.kind == ItemKind::Frame && !ScenePainter::header(item, *m_metrics).contains(world) && m_zoom > 0.3)
    return select({}, true);
  select({item.node, item.module, item.output}, true);
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !m_scene) return;
  // The first click of this double click went to another place, so the second one is not meant for the box now under
  // the pointer.
  if (m_ledTo.isValid()) return emit nodeActivated(m_ledTo);
  const QPointF world = toWorld(event->pos());
  const std::uint32_t index = m_scene->itemAt(world);
  if (index == SceneItem::kNone) return fit();
  const SceneItem& item = m_scene->items()[index];
  if (ScenePainter::foldButton(item, *m_metrics).contains(world))
    return mousePressEvent(event);  // two quick clicks on the button
  if (item.node.isValid())
    emit nodeActivated(item.node);
  else if (item.kind != ItemKind::Frame || ScenePainter::header(item, *m_metrics).contains(world))
    toggle(index, false);
}

void GraphView::wheelEvent(QWheelEvent* event) {
  const QPoint pixels = event->pixelDelta(), angle = event->angleDelta();
  if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier)) {
    const int along = angle.y() != 0 ? angle.y() : angle.x();
    const QPointF by = !pixels.isNull()                         ? QPointF(pixels)
                       : (event->modifiers() & Qt::AltModifier) ? QPointF(0, along)
                                                                : QPointF(along, 0);
    panBy(by);
  } else {
    zoomAt(m_zoom * std::pow(1.0016, angle.y()), event->position());
  }
  event->accept();
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  if (!m_scene) return;
  std::uint32_t index =
      event->reason() == QContextMenuEvent::Mouse ? m_scene->itemAt(toWorld(event->pos())) : selectedItem();
  NodeId node;
  ScopeId scope;
  QPoint at = event->globalPos();
  if (index != SceneItem::kNone) {
    const SceneItem& item = m_scene->items()[index];
    select({item.node, item.module, item.output}, true);
    node = item.node;
    scope = item.module.isValid() ? scopeOf(item.module) : node.isValid() ? graph()->node(node).scope : ScopeId(0);
    if (event->reason() != QContextMenuEvent::Mouse) at = viewport()->mapToGlobal(viewRect(item).center().toPoint());
  }
  emit contextMenuRequested(at, node, scope);
}

QString GraphView::tooltip(std::uint32_t index, const QPointF& world) const {
  const SceneItem& item = m_scene->items()[index];
  const auto valueText = [&](ValueId v) {
    const graph::Value& value = graph()->value(v);
    const SplitCounts& counts = *m_splits;
    QString how = describe(m_board->of(v));
    if (const auto meaning = graph::toText(counts.meaning(v)); !meaning.empty())
      how += QStringLiteral(" (%1)").arg(QString::fromUtf8(meaning.data(), static_cast<qsizetype>(meaning.size())));
    if (m_board->of(v) && m_board->of(v)->isSplit() && counts.tint(v) == Tint::Replicated)
      how += QStringLiteral(": replicated, each rank has a full copy");
    return QStringLiteral("<b>%1</b>&nbsp; %2 %3<br>%4: %5")
        .arg(QString::fromStdString(value.name).toHtmlEscaped(),
             QString::fromUtf8(graph::toText(value.type.dtype).data()), shapeText(value.type.shape),
             m_board->of(v) ? QString::fromStdString(m_board->of(v)->text()) : QStringLiteral("–"), how);
  };
  if (const HubLabel* hub = ScenePainter::chipAt(item, *m_labels, world))
    return valueText(hub->value) + QStringLiteral("<br>read all over the model; click to go to its source");
  if (item.node.isValid()) {
    const graph::Node& node = graph()->node(item.node);
    QString text = node.results.empty() ? QString() : valueText(node.results[0]);
    if (m_splits->isLayer(item.node)) text += QStringLiteral("<br>%1").arg(describe(m_splits->split(item.node)));
    if (node.kind == graph::NodeKind::Call)
      text += QStringLiteral("<br>%1").arg(QString::fromStdString(graph()->opName(node)).toHtmlEscaped());
    if (node.scope.index() < graph()->scopes.size() && !graph()->scope(node.scope).path.empty())
      text += QStringLiteral("<br>%1").arg(QString::fromStdString(graph()->scope(node.scope).path).toHtmlEscaped());
    if (const QString tip = m_heat ? m_heat->tip(item.node) : QString(); !tip.isEmpty())
      text += QStringLiteral("<br>") + tip;
    return text;
  }
  if (item.output >= 0) return valueText(graph()->outputs[static_cast<std::size_t>(item.output)].value);
  if (!ScenePainter::header(item, *m_metrics).contains(world) && item.kind == ItemKind::Frame) return {};
  const Module& module = m_model->module(item.module);
  const ModuleTally tally = m_board->tally(item.module, item.lastModule);
  QString text = QStringLiteral("<b>%1</b>&nbsp; %2")
                     .arg(m_labels->module(item.module, item.lastModule).title.toHtmlEscaped(),
                          QString::fromStdString(module.className).toHtmlEscaped());
  if (const QString tip = m_heat ? m_heat->tip(item.module, item.lastModule) : QString(); !tip.isEmpty())
    text += QStringLiteral("<br>") + tip;
  for (const QString& line : splitLines(tally.split)) text += QStringLiteral("<br>") + line.toHtmlEscaped();
  if (item.kind != ItemKind::Stack) return text;
  text += QStringLiteral("<br>equal modules; + unfolds the first, the list button lists all");
  if (const auto unlike = m_board->unlike(item.module, item.lastModule); unlike > 0)
    text += QStringLiteral("<br><b>%1</b> of them are split differently from the first").arg(unlike);
  return text;
}

// ---- keys

void GraphView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(kKeyZoom);
    case Qt::Key_Minus: return zoomBy(1 / kKeyZoom);
    case Qt::Key_0: return fit();
    case Qt::Key_1: return zoomTo(1);
    case Qt::Key_N: return setHelpersFolded(!areHelpersFolded());
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
      if (m_scene && event->modifiers() == Qt::NoModifier) return walk(event->key());
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (const std::uint32_t item = selectedItem(); item != SceneItem::kNone) {
        if (m_selection.module.isValid())
          toggle(item, event->modifiers() & Qt::ShiftModifier);
        else if (m_selection.node.isValid())
          emit nodeActivated(m_selection.node);
        return;
      }
      break;
    case Qt::Key_Backspace:  // to the module around the selection
      if (const std::uint32_t item = selectedItem();
          item != SceneItem::kNone && m_scene->items()[item].parent != SceneItem::kNone)
        return select({{}, m_scene->items()[m_scene->items()[item].parent].module, -1}, true);
      break;
    default: break;
  }
  QAbstractScrollArea::keyPressEvent(event);
}

/// Down and up follow edges, also through open modules. Left and right go to the neighbour in the same row.
void GraphView::walk(int key) {
  const auto& items = m_scene->items();
  std::uint32_t from = selectedItem(), to = SceneItem::kNone;
  if (from == SceneItem::kNone) {
    if (items.empty()) return;
    to = 0;
  } else if (key == Qt::Key_Down || key == Qt::Key_Up) {
    if (!m_links) m_links = std::make_unique<SceneLinks>(*m_scene);
    const Neighbourhood next = key == Qt::Key_Down ? m_links->readersOf(from) : m_links->sourcesOf(from);
    const auto distance = [&](std::uint32_t i) {
      return std::abs(items[i].rect.center().x() - items[from].rect.center().x()) +
             std::abs(items[i].rect.center().y() - items[from].rect.center().y());
    };
    for (const std::uint32_t i : next.items)
      if (to == SceneItem::kNone || distance(i) < distance(to)) to = i;
  } else {
    const QRectF& here = items[from].rect;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const QRectF& there = items[i].rect;
      if (i == from || items[i].parent != items[from].parent || there.bottom() < here.top() ||
          there.top() > here.bottom())
        continue;
      const bool isAside = key == Qt::Key_Right ? there.left() >= here.right() : there.right() <= here.left();
      if (isAside && (to == SceneItem::kNone || std::abs(there.center().x() - here.center().x()) <
                                                    std::abs(items[to].rect.center().x() - here.center().x())))
        to = i;
    }
  }
  if (to == SceneItem::kNone) return;
  scrollIntoView(items[to].rect);
  select({items[to].node, items[to].module, items[to].output}, true);
}

}  // namespace cleave::views
