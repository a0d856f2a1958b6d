#include "views/panels/world_sizes.h"

#include <QPainter>
#include <QResizeEvent>
#include <algorithm>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/panels/figures.h"

namespace cleave::views {

using plan::WorldSizeVerdict;

namespace {
constexpr int kGap = 3;

struct Look {
  QColor ground, ink;
};

Look lookOf(const Theme& theme, WorldSizeVerdict verdict) {
  switch (verdict) {
    case WorldSizeVerdict::Works: return {blend(theme.ground, theme.good, theme.dark ? 0.35 : 0.22), theme.text};
    case WorldSizeVerdict::Partly:
      return {blend(theme.ground, theme.color(Tint::Dim0), theme.dark ? 0.40 : 0.35), theme.text};
    case WorldSizeVerdict::Nothing:
    case WorldSizeVerdict::DoesNotPay:
    case WorldSizeVerdict::NotAskedFor: return {theme.groundSunken, theme.textQuiet};
    case WorldSizeVerdict::OverBudget:
    case WorldSizeVerdict::NoSolution:
      return {blend(theme.ground, theme.conflict, theme.dark ? 0.45 : 0.28), theme.text};
  }
  return {theme.ground, theme.text};
}

void paintSign(QPainter& painter, const QPointF& centre, WorldSizeVerdict verdict, const QColor& ink) {
  painter.setPen(QPen(ink, 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(Qt::NoBrush);
  const auto at = [&](double x, double y) { return centre + QPointF(x, y); };
  switch (verdict) {
    case WorldSizeVerdict::Works: painter.drawPolyline(QPolygonF({at(-4, 0), at(-1, 3.5), at(4.5, -3.5)})); break;
    case WorldSizeVerdict::Partly: {
      painter.drawEllipse(centre, 4, 4);
      painter.setBrush(ink);
      painter.drawPie(QRectF(at(-4, -4), QSizeF(8, 8)), 90 * 16, 180 * 16);
      break;
    }
    case WorldSizeVerdict::Nothing: painter.drawLine(at(-4, 0), at(4, 0)); break;
    case WorldSizeVerdict::DoesNotPay:  // =: does not pay
      painter.drawLine(at(-4, -2), at(4, -2));
      painter.drawLine(at(-4, 2), at(4, 2));
      break;
    case WorldSizeVerdict::NotAskedFor: painter.drawEllipse(centre, 4, 4); break;
    case WorldSizeVerdict::OverBudget:  // a full vessel
      painter.drawRect(QRectF(at(-4, -4), QSizeF(8, 8)));
      painter.fillRect(QRectF(at(-4, -4), QSizeF(8, 8)), ink);
      break;
    case WorldSizeVerdict::NoSolution:
      painter.drawLine(at(-3.5, -3.5), at(3.5, 3.5));
      painter.drawLine(at(-3.5, 3.5), at(3.5, -3.5));
      break;
  }
}
}  // namespace

QString worldSizeText(const plan::WorldSize& size) {
  const QString name = size.ranks == 1 ? QStringLiteral("1 rank") : QStringLiteral("%1 ranks").arg(size.ranks);
  QString text = prose(plan::toText(size));
  if (size.hasPlan)
    text += QStringLiteral(" · %1 per rank · %2 per step").arg(bytesText(size.rankBytes), timeText(size.femtoseconds));
  if (size.hasPlan && !size.fitsBudget())
    text += QStringLiteral(" · over the memory budget by %1").arg(bytesText(size.overBytes));
  return QStringLiteral("%1 – %2").arg(name, text);
}

QString worldSizeReason(const plan::WorldSize& size) {
  const QString text = worldSizeText(size);
  const bool isTold = size.verdict != WorldSizeVerdict::OverBudget || size.hasPlan || size.why.empty();
  return isTold ? text : text + QStringLiteral(".\n") + prose(size.why);
}

WorldSizeStrip::WorldSizeStrip(QWidget* parent) : PlotWidget(QStringLiteral("Numbers of ranks"), parent, 0) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void WorldSizeStrip::setSizes(std::vector<plan::WorldSize> sizes, int count) {
  m_sizes = std::move(sizes);
  m_count = std::max(1, count);
  dataChanged(std::min(current(), m_count) - 1);
  setFixedHeight(heightForWidth(width()));
  emit detailChanged();
}

void WorldSizeStrip::setChosen(int ranks) {
  if (ranks == m_chosen) return;
  m_chosen = ranks;
  if (!hasFocus() && ranks >= 1 && ranks <= m_count) setCurrent(ranks);
  emit detailChanged();
  update();
}

void WorldSizeStrip::setCurrent(int ranks) { setCurrentMark(std::clamp(ranks, 1, m_count) - 1); }

const plan::WorldSize* WorldSizeStrip::sizeOf(int ranks) const {
  const auto found =
      std::find_if(m_sizes.begin(), m_sizes.end(), [&](const auto& size) { return size.ranks == ranks; });
  return found == m_sizes.end() ? nullptr : &*found;
}

QString WorldSizeStrip::notTried(int ranks) { return QStringLiteral("%1 – not tried").arg(ranksText(ranks)); }

QString WorldSizeStrip::detail() const {
  const plan::WorldSize* size = sizeOf(shownRanks());
  return size ? worldSizeText(*size) : notTried(shownRanks());
}

QString WorldSizeStrip::reason(int ranks) const {
  const plan::WorldSize* size = sizeOf(ranks);
  return size ? worldSizeReason(*size) : notTried(ranks);
}

QSize WorldSizeStrip::cellSize() const {
  const QFontMetrics metrics = fontMetrics();
  return {metrics.horizontalAdvance(QStringLiteral("00")) + 14, metrics.height() + 17};
}

int WorldSizeStrip::columns(int width) const {
  const int fit = std::max(1, (width + kGap) / (cellSize().width() + kGap));
  for (const int even : {64, 32, 16, 8, 4})  // powers of two are aligned below each other
    if (fit >= even) return even;
  return fit;
}

int WorldSizeStrip::heightForWidth(int width) const {
  const int perRow = columns(width);
  const int rows = (m_count + perRow - 1) / perRow;
  return rows * (cellSize().height() + kGap) + kGap + legend().heightFor(width);
}

void WorldSizeStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  setFixedHeight(heightForWidth(width()));
}

QSize WorldSizeStrip::sizeHint() const {
  const int width = 16 * (cellSize().width() + kGap);
  return {width, heightForWidth(width)};
}

QSize WorldSizeStrip::minimumSizeHint() const { return {4 * (cellSize().width() + kGap), cellSize().height()}; }

QRect WorldSizeStrip::cellOf(int ranks) const {
  const int perRow = columns(width()), index = ranks - 1;
  const QSize cell = cellSize();
  return {QPoint((index % perRow) * (cell.width() + kGap) + 1, (index / perRow) * (cell.height() + kGap) + 1), cell};
}

int WorldSizeStrip::ranksAt(const QPoint& position) const {
  for (int ranks = 1; ranks <= m_count; ++ranks)
    if (cellOf(ranks).contains(position)) return ranks;
  return 0;
}

void WorldSizeStrip::paintPlot(QPainter& painter) {
  for (int ranks = 1; ranks <= m_count; ++ranks) paintCell(painter, ranks);
  const int top = cellOf(m_count).bottom() + kGap;
  legend().paint(painter, QRect(0, top, width(), height() - top), theme().textQuiet);
}

void WorldSizeStrip::paintCell(QPainter& painter, int ranks) const {
  const Theme theme = Theme::of(palette());
  const QRect cell = cellOf(ranks);
  const plan::WorldSize* size = sizeOf(ranks);
  const Look look = size ? lookOf(theme, size->verdict) : Look{theme.ground, theme.textQuiet};
  const QRectF box = QRectF(cell).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.setBrush(look.ground);
  painter.setPen(size ? QPen(theme.border, 1) : QPen(theme.borderStrong, 1, Qt::DashLine));
  painter.drawRoundedRect(box, 3, 3);
  painter.setPen(look.ink);
  painter.setFont(font());
  painter.drawText(cell.adjusted(0, 2, 0, 0), Qt::AlignHCenter | Qt::AlignTop, QString::number(ranks));
  if (size) paintSign(painter, QPointF(cell.center().x() + 0.5, cell.bottom() - 8), size->verdict, look.ink);
  if (ranks == m_chosen) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.text, 2));
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
  }
  if ((hasFocus() && ranks == current()) || ranks == hoveredMark() + 1) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.accent, 2, ranks == hoveredMark() + 1 ? Qt::SolidLine : Qt::DotLine));
    painter.drawRoundedRect(box.adjusted(2, 2, -2, -2), 2, 2);
  }
}

PlotLegend WorldSizeStrip::legend() const {
  static const std::pair<WorldSizeVerdict, const char*> kNames[] = {{WorldSizeVerdict::Works, "works"},
                                                                    {WorldSizeVerdict::Partly, "in part"},
                                                                    {WorldSizeVerdict::Nothing, "nothing splits"},
                                                                    {WorldSizeVerdict::DoesNotPay, "does not pay"},
                                                                    {WorldSizeVerdict::NotAskedFor, "needs a setting"},
                                                                    {WorldSizeVerdict::NoSolution, "no solution"},
                                                                    {WorldSizeVerdict::OverBudget, "over the budget"}};
  PlotLegend legend(smallFont(font()));
  for (const auto& [verdict, text] : kNames) {
    // The usual verdicts are always shown, the others only if they occur.
    const bool isUsual = verdict == WorldSizeVerdict::Works || verdict == WorldSizeVerdict::Partly;
    const auto isIt = [verdict = verdict](const auto& size) { return size.verdict == verdict; };
    if (!isUsual && std::none_of(m_sizes.begin(), m_sizes.end(), isIt)) continue;
    legend.add(QString::fromUtf8(text), [verdict = verdict, ink = theme().text](QPainter& painter, const QRectF& rect) {
      paintSign(painter, rect.center(), verdict, ink);
    });
  }
  return legend;
}

void WorldSizeStrip::markClicked(int mark, bool) { emit chosen(mark + 1); }

bool WorldSizeStrip::useMark(int mark) {
  emit chosen(mark + 1);
  return true;
}

}  // namespace cleave::views
