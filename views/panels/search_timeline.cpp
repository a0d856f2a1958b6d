#include "views/panels/search_timeline.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QWheelEvent>
#include <cmath>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kPixelsPerBucket = 3;
constexpr int kMargin = 8;
constexpr int kMarkRow = 11;   ///< height of the rows of crosses and drops
constexpr int kScaleRow = 16;  ///< height of the row of step numbers
constexpr int kRequestDelayMs = 30;
constexpr StepId kFewestEvents = 16;
constexpr double kZoom = 0.8;
}  // namespace

SearchTimeline::SearchTimeline(Debugger& debugger, const Plans& plans, QWidget* parent)
    : PlotWidget(QStringLiteral("Timeline of the search"), parent), m_debugger(debugger), m_plans(plans) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  m_requestTimer.setSingleShot(true);
  m_requestTimer.setInterval(kRequestDelayMs);
  connect(&m_requestTimer, &QTimer::timeout, this, &SearchTimeline::requestBuckets);
  connect(&debugger, &Debugger::traceChanged, this, &SearchTimeline::traceChanged);
  connect(&debugger, &Debugger::traceGrew, this, [this] {
    if (m_showsAll) showRange(0, m_debugger.stepCount());
  });
  connect(&plans, &Plans::planChanged, this, &SearchTimeline::repaintSearch);
  connect(&debugger, &Debugger::stepChanged, this, &SearchTimeline::showStep);
}

/// The step number, which a screen reader reads for the strip and which is always drawn.
void SearchTimeline::showStep() {
  const StepId step = m_debugger.wantedStep(), length = m_last - m_first;
  if (!m_showsAll && (step < m_first || step > m_last)) {
    const StepId most = m_debugger.stepCount() - std::min(length, m_debugger.stepCount());
    const StepId first = std::min(most, step - std::min(step, length / 2));
    showRange(first, first + length);
  }
  setAccessibleDescription(QStringLiteral("step %1 of %2").arg(countText(step), countText(m_debugger.stepCount())));
  update();
}

void SearchTimeline::showAll() {
  m_showsAll = true;
  showRange(0, m_debugger.stepCount());
}

void SearchTimeline::traceChanged() {
  m_buckets.clear();
  showAll();
}

void SearchTimeline::showRange(StepId first, StepId last) {
  m_first = first;
  m_last = std::max(last, first + 1);
  if (!m_requestTimer.isActive()) m_requestTimer.start();
  repaintSearch();
}

void SearchTimeline::repaintSearch() {
  m_picture = {};
  update();
}

void SearchTimeline::changeEvent(QEvent* event) {
  PlotWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) repaintSearch();
}

void SearchTimeline::requestBuckets() {
  const auto trace = m_debugger.trace();
  if (!trace || trace->size() == 0) return;
  const auto count = static_cast<std::size_t>(std::max(16, plotRect().width() / kPixelsPerBucket));
  m_debugger.reads().post(QStringLiteral("timeline"), {},
                          [=, this, first = m_first, last = m_last](const Progress& progress) -> Worker::Completion {
                            auto buckets = solve::timeline(
                                *trace, first, last,
                                std::min<std::size_t>(count, static_cast<std::size_t>(last - first)), progress);
                            return [=, this, buckets = std::move(buckets)] {
                              if (trace != m_debugger.trace()) return;
                              m_buckets = buckets;
                              m_bucketFirst = first;
                              m_bucketLast = last;
                              repaintSearch();
                            };
                          });
}

QRect SearchTimeline::plotRect() const { return rect().adjusted(kMargin, 4, -kMargin, -kScaleRow); }

PlotFrame SearchTimeline::frame() const {
  return {plotRect(), {static_cast<double>(m_first), static_cast<double>(m_last)}, {}};
}

StepId SearchTimeline::stepAt(int x) const {
  const PlotFrame frame = this->frame();
  return static_cast<StepId>(std::llround(std::clamp(frame.fromX(x), frame.x.low, frame.x.high)));
}

int SearchTimeline::xOf(StepId step) const { return static_cast<int>(frame().toX(static_cast<double>(step))); }

QString SearchTimeline::emptyText() const {
  if (m_debugger.trace() && m_debugger.stepCount() > 0) return {};
  return m_plans.plan() ? QStringLiteral("This plan was opened without its search. Solve to record a search.")
                        : QStringLiteral("Solve a model to see its search here. Drag to move through the steps.");
}

void SearchTimeline::paintEvent(QPaintEvent* event) {
  PlotWidget::paintEvent(event);
  if (!hasFocus()) return;
  QPainter painter(this);
  paintFocus(painter, rect());
}

void SearchTimeline::paintPlot(QPainter& painter) {
  const double ratio = devicePixelRatioF();
  if (m_picture.size() != size() * ratio) {
    m_picture = QPixmap(size() * ratio);
    m_picture.setDevicePixelRatio(ratio);
    paintSearch();
  }
  painter.drawPixmap(0, 0, m_picture);
  paintStep(painter);
}

/// Everything except the step. It does not change while the user steps.
void SearchTimeline::paintSearch() {
  QPainter painter(&m_picture);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(font());
  const Theme theme = this->theme();
  const QRect plot = plotRect();
  painter.fillRect(rect(), theme.ground);
  painter.setPen(theme.border);
  painter.drawLine(plot.left(), plot.bottom() + 1, plot.right(), plot.bottom() + 1);
  paintDepth(painter, plot.adjusted(0, 2 * kMarkRow, 0, 0));
  paintMarks(painter, plot);
  painter.setFont(smallFont(font()));
  painter.setPen(theme.textQuiet);
  painter.drawText(scaleRect(), Qt::AlignLeft | Qt::AlignVCenter, countText(m_first));
  painter.drawText(scaleRect(), Qt::AlignRight | Qt::AlignVCenter, countText(m_last));
}

QRect SearchTimeline::scaleRect() const {
  const QRect plot = plotRect();
  return {plot.left(), plot.bottom() + 2, plot.width(), kScaleRow - 2};
}

void SearchTimeline::paintStep(QPainter& painter) const {
  const Theme theme = this->theme();
  const QRect plot = plotRect(), scale = scaleRect();
  painter.setFont(smallFont(font()));
  const StepId step = m_debugger.wantedStep();
  if (step < m_first || step > m_last) return;
  const int x = xOf(step);
  painter.setPen(QPen(theme.accent, 2));
  painter.drawLine(x, plot.top(), x, plot.bottom());
  const QString label = countText(step);
  const int width = painter.fontMetrics().horizontalAdvance(label) + 10;
  const QRect tag(std::clamp(x - width / 2, plot.left(), plot.right() - width), scale.top(), width, scale.height());
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.accent);
  painter.drawRoundedRect(tag, 3, 3);
  painter.setPen(theme.onAccent);
  painter.drawText(tag, Qt::AlignCenter, label);
}

void SearchTimeline::paintDepth(QPainter& painter, const QRect& plot) const {
  if (m_buckets.empty() || plot.height() < 4) return;
  const Theme theme = this->theme();
  std::uint32_t deepest = 1;
  for (const auto& bucket : m_buckets) deepest = std::max(deepest, bucket.maxDepth);
  const PlotFrame depths{plot, frame().x, {0, static_cast<double>(deepest)}};
  const auto yOf = [&](std::uint32_t depth) { return depths.toY(depth) - 1; };
  const auto xAt = [&](std::size_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(m_buckets.size());
    // The first event is step 1. Step 0 is before it.
    return depths.toX(static_cast<double>(m_bucketFirst) + 1 +
                      share * static_cast<double>(m_bucketLast - m_bucketFirst));
  };
  QPainterPath top, low;
  const double left = depths.toX(static_cast<double>(m_bucketFirst));
  top.moveTo(left, yOf(m_buckets.front().minDepth));
  low.moveTo(left, yOf(m_buckets.front().minDepth));
  for (std::size_t i = 0; i < m_buckets.size(); ++i) {
    top.lineTo(xAt(i), yOf(m_buckets[i].maxDepth));
    top.lineTo(xAt(i + 1), yOf(m_buckets[i].maxDepth));
    low.lineTo(xAt(i), yOf(m_buckets[i].minDepth));
    low.lineTo(xAt(i + 1), yOf(m_buckets[i].minDepth));
  }
  QPainterPath area = top;
  area.lineTo(xAt(m_buckets.size()), plot.bottom());
  area.lineTo(left, plot.bottom());
  area.closeSubpath();
  painter.save();
  painter.setClipRect(plot.adjusted(0, -1, 0, 1));
  painter.setPen(Qt::NoPen);
  painter.setBrush(blend(theme.ground, theme.accent, 0.14));
  painter.drawPath(area);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(blend(theme.ground, theme.accent, 0.45), 1));
  painter.drawPath(low);
  painter.setPen(QPen(theme.accent, 1.2));
  painter.drawPath(top);
  painter.restore();
}

void SearchTimeline::paintMarks(QPainter& painter, const QRect& plot) const {
  const Theme theme = this->theme();
  painter.save();
  painter.setClipRect(rect());
  const double bucketEvents =
      static_cast<double>(m_bucketLast - m_bucketFirst) / std::max<std::size_t>(1, m_buckets.size());
  int lastCross = -100, lastDrop = -100;
  for (std::size_t i = 0; i < m_buckets.size(); ++i) {
    const auto& bucket = m_buckets[i];
    // The middle of the steps of these events. For one event, its own step.
    const int x = xOf(m_bucketFirst + static_cast<StepId>(std::llround((static_cast<double>(i) + 0.5) * bucketEvents)));
    const int y = plot.top() + kMarkRow / 2;
    if (bucket.conflicts && x - lastCross >= 7) {
      lastCross = x;
      painter.setPen(QPen(theme.conflict, 1.6));
      painter.drawLine(x - 3, y - 3, x + 3, y + 3);
      painter.drawLine(x - 3, y + 3, x + 3, y - 3);
    }
    if (bucket.backtracks && x - lastDrop >= 7) {
      lastDrop = x;
      painter.setPen(Qt::NoPen);
      painter.setBrush(theme.textQuiet);
      const int d = y + kMarkRow;
      painter.drawPolygon(QPolygon({QPoint(x - 3, d - 3), QPoint(x + 3, d - 3), QPoint(x, d + 3)}));
    }
    if (bucket.solutions) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(theme.good);
      painter.drawPolygon(QPolygon({QPoint(x, y - 5), QPoint(x + 5, y), QPoint(x, y + 5), QPoint(x - 5, y)}));
    }
  }
  painter.restore();
}

void SearchTimeline::resizeEvent(QResizeEvent* event) {
  PlotWidget::resizeEvent(event);
  m_requestTimer.start();
}

void SearchTimeline::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton && m_debugger.trace())
    m_debugger.seek(stepAt(static_cast<int>(event->position().x())));
}

void SearchTimeline::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) && m_debugger.trace()) {
    m_debugger.seek(stepAt(static_cast<int>(event->position().x())));
    update();
  }
}

void SearchTimeline::mouseDoubleClickEvent(QMouseEvent*) { showAll(); }

void SearchTimeline::keyPressEvent(QKeyEvent* event) {
  const auto tenth = static_cast<std::int64_t>(std::max<StepId>(1, (m_last - m_first) / 10));
  switch (event->key()) {
    case Qt::Key_Left: return m_debugger.stepBy(-1);
    case Qt::Key_Right: return m_debugger.stepBy(+1);
    case Qt::Key_PageUp: return m_debugger.stepBy(-tenth);
    case Qt::Key_PageDown: return m_debugger.stepBy(+tenth);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomAbout(m_debugger.wantedStep(), kZoom);
    case Qt::Key_Minus: return zoomAbout(m_debugger.wantedStep(), 1 / kZoom);
    case Qt::Key_0: return showAll();
    default: PlotWidget::keyPressEvent(event);
  }
}

void SearchTimeline::wheelEvent(QWheelEvent* event) {
  if (event->angleDelta().y() == 0) return;
  zoomAbout(stepAt(static_cast<int>(event->position().x())), std::pow(kZoom, event->angleDelta().y() / 120.0));
  event->accept();
}

/// `factor` below 1 zooms in. The pivot keeps its position.
void SearchTimeline::zoomAbout(StepId step, double factor) {
  const StepId total = m_debugger.stepCount();
  if (total == 0) return;
  const PlotRange all{0, static_cast<double>(total)};
  const PlotRange shown = frame().x.zoomed(factor, static_cast<double>(step), all, kFewestEvents);
  m_showsAll = shown.length() >= all.length();
  showRange(static_cast<StepId>(shown.low), static_cast<StepId>(shown.high));
}

PlotTip SearchTimeline::tipAt(const QPointF& position) const {
  if (m_buckets.empty()) return {};
  const StepId step = stepAt(static_cast<int>(position.x()));
  const auto range = static_cast<double>(std::max<StepId>(1, m_bucketLast - m_bucketFirst));
  const auto before = static_cast<double>(step > m_bucketFirst ? step - 1 - m_bucketFirst : 0);
  const auto at = static_cast<std::size_t>(before / range * static_cast<double>(m_buckets.size()));
  const auto& bucket = m_buckets[std::min(at, m_buckets.size() - 1)];
  return {QStringLiteral("step %1 · here: %2, %3, %4, up to %5 assigned")
              .arg(countText(step), countedText(bucket.tries, "try", "tries"),
                   countedText(bucket.conflicts, "conflict"), countedText(bucket.backtracks, "backtrack"),
                   countedText(bucket.maxDepth, "node"))};
}

}  // namespace cleave::views
