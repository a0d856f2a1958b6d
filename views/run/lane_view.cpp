#include "views/run/lane_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "pipeline/report/node_names.h"
#include "plan/build/node_costs.h"
#include "solve/cost/cost_model.h"
#include "views/base/text.h"
#include "views/base/theme.h"

namespace cleave::views {

using pipeline::Doing;
using pipeline::Stretch;
using protocol::SpanKind;

namespace {
constexpr int kLeastLane = 15, kMostLane = 56, kLaneGap = 3;
constexpr int kScrollSteps = 10'000;  // range of the horizontal scroll bar: the whole step
constexpr double kLeastVisibleNs = 100;
constexpr double kZoomOfWheel = 1.25, kFsPerNs = 1e6;
constexpr int kPanDistance = 4;

QString nanosecondsText(double nanoseconds) { return toQ(solve::timeText(Femtoseconds::ofSeconds(nanoseconds / 1e9))); }

QString kindName(LaneKind kind) {
  switch (kind) {
    case LaneKind::Forward: return QStringLiteral("compute, forward");
    case LaneKind::Backward: return QStringLiteral("compute, backward");
    case LaneKind::Optimizer: return QStringLiteral("optimizer");
    case LaneKind::Collective: return QStringLiteral("collective");
    case LaneKind::Waiting: break;
  }
  return QStringLiteral("waiting for other ranks");
}

QColor kindColor(const Theme& theme, LaneKind kind) {
  switch (kind) {
    case LaneKind::Forward: return theme.color(Tint::Expert);
    case LaneKind::Backward: return theme.color(Tint::Dim1);
    case LaneKind::Optimizer: return theme.color(LayerSplit::Column);
    case LaneKind::Collective: return theme.color(Tint::Dim0);
    case LaneKind::Waiting: break;
  }
  return theme.groundSunken;
}

/// Kinds differ by pattern as well as colour: collectives are crossed, waiting is hatched on the ground.
void fillKind(QPainter& painter, const QRectF& rect, const Theme& theme, LaneKind kind) {
  painter.fillRect(rect, kindColor(theme, kind));
  if (rect.width() < 3) return;
  QColor ink = theme.text;
  if (kind == LaneKind::Waiting) {
    ink.setAlpha(90);
    painter.fillRect(rect, QBrush(ink, Qt::BDiagPattern));
  } else if (kind == LaneKind::Collective) {
    ink = QColor(0x1B, 0x1F, 0x24, 60);
    painter.fillRect(rect, QBrush(ink, Qt::VerPattern));
  }
}
}  // namespace

LaneKind laneKindOf(const Stretch& stretch) {
  if (stretch.doing == Doing::Waiting) return LaneKind::Waiting;
  if (stretch.doing == Doing::Collective) return LaneKind::Collective;
  return stretch.kind == SpanKind::Forward    ? LaneKind::Forward
         : stretch.kind == SpanKind::Backward ? LaneKind::Backward
                                              : LaneKind::Optimizer;
}

LaneView::LaneView(QWidget* parent) : QAbstractScrollArea(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(QStringLiteral("Lanes: timeline of each rank"));
  setMinimumSize(200, 120);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  viewport()->setMouseTracking(true);
  measureGutter();
  connect(horizontalScrollBar(), &QScrollBar::valueChanged, this, &LaneView::scrollTo);
}

void LaneView::setTimeline(std::shared_ptr<const pipeline::Timeline> timeline, std::shared_ptr<const plan::Plan> plan) {
  if (timeline == m_timeline) return;
  m_timeline = timeline && !timeline->isEmpty() ? std::move(timeline) : nullptr;
  m_plan = std::move(plan);
  m_costs = m_timeline ? plan::costByNode(*m_plan) : std::vector<solve::StepCost>();
  m_chosen.reset();
  showAll();
  emit chosenChanged();
}

void LaneView::setFocusNode(graph::NodeId node) {
  m_focus = node;
  viewport()->update();
}

/// Computed once per font, because every stretch uses it.
void LaneView::measureGutter() { m_gutter = fontMetrics().horizontalAdvance(QStringLiteral("rank 00  100 %")) + 14; }
void LaneView::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) measureGutter();
}
int LaneView::axisHeight() const { return fontMetrics().height() + 8; }
int LaneView::laneHeight() const {
  return ranks() == 0 ? kLeastLane : std::clamp((viewport()->height() - axisHeight()) / ranks(), kLeastLane, kMostLane);
}

PlotFrame LaneView::frame() const {
  return {QRectF(gutter(), axisHeight(), viewport()->width() - gutter(), viewport()->height()), m_shown, {}};
}
double LaneView::xOf(double nanoseconds) const { return frame().toX(nanoseconds); }
double LaneView::timeAt(double x) const { return frame().fromX(x); }

PlotRange LaneView::whole() const {
  return {0, m_timeline ? static_cast<double>(std::max<std::int64_t>(1, m_timeline->totalNs)) : 1};
}

void LaneView::setVisible(const PlotRange& range) {
  m_shown = range.within(whole(), kLeastVisibleNs);
  updateScrollBars();
  viewport()->update();
}

void LaneView::showAll() { setVisible(whole()); }

void LaneView::zoomBy(double factor, double atShare) {
  setVisible(m_shown.zoomed(1 / factor, m_shown.at(atShare), whole(), kLeastVisibleNs));
}

void LaneView::updateScrollBars() {
  const double all = whole().high;
  const QSignalBlocker a(horizontalScrollBar()), b(verticalScrollBar());
  const int page = static_cast<int>(m_shown.length() / all * kScrollSteps);
  horizontalScrollBar()->setRange(0, kScrollSteps - page);
  horizontalScrollBar()->setPageStep(std::max(1, page));
  horizontalScrollBar()->setSingleStep(std::max(1, page / 10));
  horizontalScrollBar()->setValue(static_cast<int>(m_shown.low / all * kScrollSteps));
  const int room = viewport()->height() - axisHeight();
  verticalScrollBar()->setRange(0, std::max(0, ranks() * laneHeight() - room));
  verticalScrollBar()->setPageStep(std::max(1, room));
  verticalScrollBar()->setSingleStep(laneHeight());
}

void LaneView::scrollTo(int position) {
  if (!m_timeline) return;
  const double length = m_shown.length();
  m_shown.low = static_cast<double>(position) / kScrollSteps * static_cast<double>(m_timeline->totalNs);
  m_shown.high = m_shown.low + length;
  viewport()->update();
}

void LaneView::scrollContentsBy(int, int) { viewport()->update(); }

void LaneView::resizeEvent(QResizeEvent*) { updateScrollBars(); }

// ---- pointer and keys

std::optional<LaneView::Place> LaneView::placeAt(const QPoint& position) const {
  const int y = position.y() - axisHeight() + verticalScrollBar()->value();
  if (position.y() < axisHeight() || position.x() < gutter() || y / laneHeight() >= ranks()) return std::nullopt;
  const int rank = y / laneHeight();
  const double from = timeAt(position.x() - 1), to = timeAt(position.x() + 1), at = timeAt(position.x());
  const Lane& all = lane(rank);
  // The stretch under the pointer, else a nearby stretch narrower than a pixel.
  auto found = std::lower_bound(all.begin(), all.end(), from, [](const Stretch& stretch, double time) {
    return static_cast<double>(stretch.endNs) < time;
  });
  std::optional<Place> near;
  for (; found != all.end() && static_cast<double>(found->beginNs) <= to; ++found) {
    const Place place{rank, static_cast<std::size_t>(found - all.begin())};
    if (static_cast<double>(found->beginNs) <= at && at <= static_cast<double>(found->endNs)) return place;
    near = place;
  }
  return near;
}

QRect LaneView::rectOf(const Place& place) const {
  const Stretch& stretch = at(place);
  const double left = xOf(static_cast<double>(stretch.beginNs)), right = xOf(static_cast<double>(stretch.endNs));
  const int top = axisHeight() - verticalScrollBar()->value() + place.rank * laneHeight();
  return QRectF(left, top, std::max(1.0, right - left), laneHeight() - kLaneGap).toAlignedRect();
}

void LaneView::choose(const Place& place) {
  m_chosen = place;
  reveal(place);
  viewport()->update();
  setAccessibleDescription(textOf(place));
  emit chosenChanged();
}

void LaneView::emitChosen(bool isActivated) {
  const graph::NodeId node = m_chosen ? pipeline::originOf(at(*m_chosen), *m_plan) : graph::NodeId();
  if (!node.isValid()) return;
  emit nodeChosen(node);
  if (isActivated) emit nodeActivated(node);
}

void LaneView::reveal(const Place& place) {
  const Stretch& stretch = at(place);
  const auto begin = static_cast<double>(stretch.beginNs), end = static_cast<double>(stretch.endNs);
  if (!m_shown.holds(begin) || !m_shown.holds(end)) {
    const double length = std::max(m_shown.length(), end - begin), middle = (begin + end) / 2;
    setVisible({middle - length / 2, middle + length / 2});
  }
  const int top = place.rank * laneHeight();
  QScrollBar* bar = verticalScrollBar();
  if (top < bar->value()) bar->setValue(top);
  if (top + laneHeight() > bar->value() + bar->pageStep()) bar->setValue(top + laneHeight() - bar->pageStep());
}

void LaneView::walk(int ranks, int stretches) {
  if (!m_timeline) return;
  Place place = m_chosen.value_or(Place{0, 0});
  if (m_chosen && ranks != 0) {
    const std::int64_t when = at(place).beginNs;
    place.rank = std::clamp(place.rank + ranks, 0, this->ranks() - 1);
    const Lane& other = lane(place.rank);
    const auto near = std::lower_bound(other.begin(), other.end(), when,
                                       [](const Stretch& stretch, std::int64_t time) { return stretch.endNs < time; });
    place.stretch = static_cast<std::size_t>(near - other.begin());
  } else if (m_chosen) {
    place.stretch =
        static_cast<std::size_t>(std::max<std::int64_t>(0, static_cast<std::int64_t>(place.stretch) + stretches));
  }
  if (lane(place.rank).empty()) return;
  place.stretch = std::min(place.stretch, lane(place.rank).size() - 1);
  choose(place);
  emitChosen(false);
}

void LaneView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left: return walk(0, -1);
    case Qt::Key_Right: return walk(0, +1);
    case Qt::Key_Up: return walk(-1, 0);
    case Qt::Key_Down: return walk(+1, 0);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(kZoomOfWheel * kZoomOfWheel);
    case Qt::Key_Minus: return zoomBy(1 / (kZoomOfWheel * kZoomOfWheel));
    case Qt::Key_0: return showAll();
    case Qt::Key_Return:
    case Qt::Key_Enter: return emitChosen(true);
    default: QAbstractScrollArea::keyPressEvent(event);
  }
}

void LaneView::wheelEvent(QWheelEvent* event) {
  const QPoint delta = event->angleDelta();
  if (event->modifiers() & Qt::ShiftModifier || delta.x() != 0) {
    const double by = (delta.x() != 0 ? delta.x() : delta.y()) / 120.0 * 0.1 * m_shown.length();
    setVisible({m_shown.low - by, m_shown.high - by});
  } else if (event->modifiers() & Qt::ControlModifier) {
    verticalScrollBar()->setValue(verticalScrollBar()->value() - delta.y() / 120 * laneHeight() * 2);
  } else if (delta.y() != 0) {
    const double share = m_shown.share(timeAt(event->position().x()));
    zoomBy(std::pow(kZoomOfWheel, delta.y() / 120.0), std::clamp(share, 0.0, 1.0));
  }
  event->accept();
}

void LaneView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  m_pressed = event->pos();
  m_pressedFrom = m_shown.low;
  m_isDragged = false;
}

void LaneView::mouseMoveEvent(QMouseEvent* event) {
  if (!m_pressed || !(event->buttons() & Qt::LeftButton)) return;
  const int by = event->pos().x() - m_pressed->x();
  m_isDragged = m_isDragged || std::abs(by) >= kPanDistance;
  if (!m_isDragged) return;
  viewport()->setCursor(Qt::ClosedHandCursor);
  const double from = m_pressedFrom - by * m_shown.length() / std::max(1.0, frame().rect.width());
  setVisible({from, from + m_shown.length()});
}

void LaneView::mouseReleaseEvent(QMouseEvent* event) {
  viewport()->unsetCursor();
  const bool wasClick = m_pressed && !m_isDragged;
  m_pressed.reset();
  if (!wasClick) return;
  if (const auto place = placeAt(event->pos())) {
    choose(*place);
    emitChosen(false);
  }
}

void LaneView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto place = placeAt(event->pos())) {
    choose(*place);
    emitChosen(true);
  }
}

bool LaneView::viewportEvent(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QAbstractScrollArea::viewportEvent(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (const auto place = placeAt(help->pos()))
    QToolTip::showText(help->globalPos(), textOf(*place), viewport(), rectOf(*place).adjusted(-2, 0, 2, 0));
  else
    QToolTip::hideText();
  return true;
}

QString LaneView::textOf(const Place& place) const {
  const Stretch& stretch = at(place);
  QStringList lines;
  const graph::NodeId node = pipeline::originOf(stretch, *m_plan);
  lines << toQ(pipeline::titleOf(stretch, *m_plan)) +
               (node.isValid() ? QStringLiteral(" of %1 (%2)")
                                     .arg(nodeName(*m_plan->graph, node), toQ(pipeline::nodeName(*m_plan->graph, node)))
                               : QString());
  lines << QStringLiteral("rank %1: %2, starting %3 into the step")
               .arg(place.rank)
               .arg(nanosecondsText(static_cast<double>(stretch.length())),
                    nanosecondsText(static_cast<double>(stretch.beginNs)));
  if (stretch.doing == Doing::Collective)
    lines << QStringLiteral("%1 over %2").arg(bytesText(stretch.bytes), ranksText(stretch.ranks));
  if (const auto seconds = pipeline::predictedSeconds(stretch, *m_plan, m_costs)) {
    const QString device = toQ(m_plan->spec.cost.profile.name);
    const bool isWholeStep = stretch.doing == Doing::Compute && m_plan->spec.cost.isTraining;
    lines << (isWholeStep ? QStringLiteral("predicted on %1: %2, forward and backward")
                          : QStringLiteral("predicted on %1: %2"))
                 .arg(device, nanosecondsText(*seconds * 1e9));
  }
  return lines.join(QLatin1Char('\n'));
}

// ---- picture

void LaneView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const Theme theme = Theme::of(palette());
  painter.fillRect(viewport()->rect(), theme.ground);
  if (!m_timeline) return;
  const int first = verticalScrollBar()->value() / laneHeight();
  for (int rank = first; rank < ranks(); ++rank) {
    if (axisHeight() - verticalScrollBar()->value() + rank * laneHeight() > viewport()->height()) break;
    paintLane(painter, rank);
  }
  if (m_chosen) {
    painter.setClipRect(QRect(gutter(), axisHeight(), viewport()->width(), viewport()->height()));
    painter.setPen(QPen(theme.accent, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rectOf(*m_chosen).adjusted(-1, -1, 1, 1));
    painter.setClipping(false);
  }
  paintAxis(painter);
}

void LaneView::paintAxis(QPainter& painter) const {
  const Theme theme = Theme::of(palette());
  const QRect head(0, 0, viewport()->width(), axisHeight());
  painter.fillRect(head, theme.groundRaised);
  painter.setPen(theme.border);
  painter.drawLine(head.bottomLeft(), head.bottomRight());
  const int most = std::max(2, (viewport()->width() - gutter()) / 90);
  const PlotAxis axis =
      PlotAxis::ofTime(Femtoseconds::ofSeconds(m_shown.low / 1e9), Femtoseconds::ofSeconds(m_shown.high / 1e9), most);
  for (const double tick : axis.ticks()) {
    const double x = xOf(tick / kFsPerNs);
    if (x < gutter() || x > viewport()->width()) continue;
    painter.setPen(theme.borderStrong);
    painter.drawLine(QPointF(x, head.bottom() - 4), QPointF(x, head.bottom()));
    const QString text = axis.label(tick) + QLatin1Char(' ') + axis.unit();
    const QSizeF size(painter.fontMetrics().horizontalAdvance(text) + 2, head.height() - 4);
    painter.setPen(theme.textQuiet);
    painter.drawText(placeLabel(x, size, 0, gutter(), viewport()->width()), Qt::AlignVCenter, text);
  }
}

void LaneView::paintLane(QPainter& painter, int rank) const {
  const Theme theme = Theme::of(palette());
  const int top = axisHeight() - verticalScrollBar()->value() + rank * laneHeight();
  const QRectF row(gutter(), top, viewport()->width() - gutter(), laneHeight() - kLaneGap);
  const pipeline::LaneSum& sum = m_timeline->sums[static_cast<std::size_t>(rank)];
  painter.setPen(theme.text);
  const QRect label(6, top, gutter() - 12, laneHeight() - kLaneGap);
  painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, QStringLiteral("rank %1").arg(rank));
  painter.setPen(theme.textQuiet);
  if (sum.total > 0)
    painter.drawText(label, Qt::AlignRight | Qt::AlignVCenter,
                     QStringLiteral("%1 %").arg(100 * sum.compute / sum.total));
  painter.fillRect(row, theme.groundRaised);
  const Lane& all = lane(rank);
  auto stretch = std::lower_bound(all.begin(), all.end(), m_shown.low,
                                  [](const Stretch& s, double time) { return static_cast<double>(s.endNs) < time; });
  painter.save();
  painter.setClipRect(row);
  double painted = row.left() - 1;  // stretches that end in an already painted pixel are invisible
  for (; stretch != all.end() && static_cast<double>(stretch->beginNs) <= m_shown.high; ++stretch) {
    const double left = std::max(xOf(static_cast<double>(stretch->beginNs)), row.left());
    const double right = std::min(std::max(xOf(static_cast<double>(stretch->endNs)), left + 0.7), row.right() + 1);
    if (right <= painted + 0.5) continue;
    painted = right;
    paintStretch(painter, QRectF(left, row.top(), right - left, row.height()), *stretch);
  }
  painter.restore();
}

void LaneView::paintStretch(QPainter& painter, const QRectF& rect, const Stretch& stretch) const {
  const Theme theme = Theme::of(palette());
  const LaneKind kind = laneKindOf(stretch);
  fillKind(painter, rect, theme, kind);
  const bool isFocused = m_focus.isValid() && pipeline::originOf(stretch, *m_plan) == m_focus;
  if (isFocused) {
    painter.fillRect(QRectF(rect.left(), rect.bottom() - 3, std::max(2.0, rect.width()), 3), theme.changed);
  }
  if (rect.width() < 24) return;
  const QFontMetrics metrics = painter.fontMetrics();
  const QString title = toQ(pipeline::titleOf(stretch, *m_plan));
  if (metrics.horizontalAdvance(title) + 6 > rect.width() || metrics.height() > rect.height() + 3) return;
  QRectF plate(0, 0, metrics.horizontalAdvance(title) + 4, std::min<double>(metrics.height(), rect.height()));
  plate.moveCenter(rect.center());
  painter.fillRect(plate, kindColor(theme, kind));
  painter.setPen(theme.textOn(kindColor(theme, kind)));
  painter.drawText(plate, Qt::AlignCenter, title);
}

// ---- legend

LaneLegend::LaneLegend(QWidget* parent) : QWidget(parent) {
  setAccessibleName(QStringLiteral("Legend of the lanes"));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void LaneLegend::setTimeline(const pipeline::Timeline* timeline) {
  bool occurs[kLaneKinds] = {};
  if (timeline)
    for (const auto& lane : timeline->lanes)
      for (const Stretch& stretch : lane) occurs[static_cast<int>(laneKindOf(stretch))] = true;
  m_kinds.clear();
  for (int i = 0; i < kLaneKinds; ++i)
    if (occurs[i]) m_kinds.push_back(static_cast<LaneKind>(i));
  updateGeometry();
  update();
}

PlotLegend LaneLegend::legend() const {
  PlotLegend legend(font());
  for (const LaneKind kind : m_kinds)
    legend.add(kindName(kind), [kind, theme = Theme::of(palette())](QPainter& painter, const QRectF& rect) {
      fillKind(painter, rect, theme, kind);
      painter.setPen(theme.borderStrong);
      painter.drawRect(rect);
    });
  return legend;
}

int LaneLegend::heightForWidth(int width) const { return legend().heightFor(width); }

void LaneLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  legend().paint(painter, rect(), Theme::of(palette()).text);
}

}  // namespace cleave::views
