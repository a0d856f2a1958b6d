#include "views/run/rank_bars.h"

#include <QPainter>
#include <QPolygonF>

#include "views/base/text.h"
#include "views/widgets/plot_legend.h"

namespace cleave::views {

namespace {
constexpr int kMargin = 8;
constexpr int kNameWidth = 44;
constexpr int kProgramBar = 10, kProcessBar = 6;
constexpr int kSparkWidth = 110;
constexpr std::size_t kMostInFull = 8;
constexpr int kLeastCell = 176, kShortBar = 7;
constexpr int kSparkSamples = 600;  // 60 s at 10 Hz

struct Part {
  const char* name;
  std::int64_t RankMemory::*bytes;
};
constexpr Part kParts[] = {{"weights", &RankMemory::weights},
                           {"activations", &RankMemory::activations},
                           {"gradients, states, workspace", &RankMemory::kept},
                           {"communication", &RankMemory::communication},
                           {"others", &RankMemory::other}};

constexpr int kOfProgram = 3, kOfProcess = 5;  // indexes into the parts

QColor partColor(const Theme& theme, int part) {
  switch (part) {
    case 0: return theme.color(Tint::Expert);
    case 1: return theme.color(Tint::Dim1);
    case 2: return theme.color(Tint::Dim4Plus);
    case 3: return theme.color(Tint::Dim3);
    default: return theme.color(Tint::Replicated);
  }
}

/// The next round number of bytes above, so that bars do not rescale at every sample.
std::int64_t roundedUp(std::int64_t bytes) {
  std::int64_t step = 1 << 10;
  while (step * 8 < bytes) step *= 2;
  return std::max<std::int64_t>(step, (bytes + step - 1) / step * step);
}
}  // namespace

RankBars::RankBars(QWidget* parent) : PlotWidget(QStringLiteral("Memory of the ranks"), parent, 0) {
  setFocusPolicy(Qt::StrongFocus);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void RankBars::setRanks(std::vector<RankView> ranks, std::int64_t predictedBytes) {
  const int height = heightForWidth(width());
  m_ranks = std::move(ranks);
  m_predicted = predictedBytes;
  std::int64_t most = m_predicted, process = 0, deviceTotal = 0;
  for (const RankView& rank : m_ranks) {
    most = std::max({most, rank.memory.program(), rank.memory.peak.program});
    process = std::max({process, rank.memory.process(), rank.memory.peak.process});
    deviceTotal = std::max(deviceTotal, rank.memory.total);
  }
  // On a GPU the bars are the device's memory. For a small model the bar of the process or of the machine would be an
  // invisible sliver, so only the program has a bar then.
  m_showsProcess = most * 5 >= process && isInFull();
  if (m_showsProcess) most = std::max(most, process);
  m_scale = deviceTotal > 0 && most * 20 > deviceTotal ? deviceTotal : roundedUp(most + most / 8);
  m_sparkTop = 1;
  for (const RankView& rank : m_ranks)
    for (const MemoryPoint& point : rank.history) m_sparkTop = std::max(m_sparkTop, point.process);
  if (heightForWidth(width()) != height) updateGeometry();
  dataChanged(std::clamp(chosen(), 0, std::max(0, markCount() - 1)));
}

/// Home and End belong to the window: they go to the ends of the search.
PlotKeys RankBars::keys(Qt::KeyboardModifiers) const {
  return {.across = columns(width()), .first = Qt::Key_PageUp, .last = Qt::Key_PageDown};
}

/// A click on the current rank shows it again.
void RankBars::markClicked(int mark, bool wasCurrent) {
  if (wasCurrent) emit rankChosen(mark);
}

bool RankBars::isInFull() const { return m_ranks.size() <= kMostInFull; }
int RankBars::columns(int width) const { return isInFull() ? 1 : std::clamp(width / kLeastCell, 1, 8); }
int RankBars::rowHeight() const {
  if (!isInFull()) return fontMetrics().height() + kShortBar + 12;
  return fontMetrics().height() * 2 + kProgramBar + (m_showsProcess ? kProcessBar : 0) + 14;
}
int RankBars::legendHeight() const { return fontMetrics().height() + 8; }
int RankBars::heightForWidth(int width) const {
  const int count = static_cast<int>(m_ranks.size()), across = columns(width);
  return count == 0 ? 0 : (count + across - 1) / across * rowHeight() + legendHeight();
}

QRect RankBars::cellOf(std::size_t rank) const {
  const int across = columns(width()), number = static_cast<int>(rank), cell = width() / across;
  return {number % across * cell, legendHeight() + number / across * rowHeight(), across == 1 ? width() : cell,
          rowHeight()};
}

int RankBars::rankAt(const QPoint& pos) const {
  for (std::size_t i = 0; i < m_ranks.size(); ++i)
    if (cellOf(i).contains(pos)) return static_cast<int>(i);
  return -1;
}

void RankBars::paintPlot(QPainter& painter) {
  if (m_ranks.empty()) return;
  paintLegend(painter, QRect(kMargin, 2, width() - kMargin, legendHeight() - 2));
  for (std::size_t i = 0; i < m_ranks.size(); ++i) {
    const QRect cell = cellOf(i);
    if (static_cast<int>(i) == chosen() && (hasFocus() || !isInFull()))
      paintFocus(painter, cell.adjusted(1, 1, -1, -1));
    isInFull() ? paintRank(painter, cell, m_ranks[i]) : paintShort(painter, cell, m_ranks[i]);
  }
}

/// One row. The last entries are left out if there is no room.
void RankBars::paintLegend(QPainter& painter, const QRect& row) const {
  const Theme theme = this->theme();
  PlotLegend legend(smallFont(font()));
  for (int part = 0; part < (m_showsProcess ? kOfProcess : kOfProgram); ++part) {
    const auto hasSome = [&](const RankView& rank) { return rank.memory.*kParts[part].bytes > 0; };
    if (std::any_of(m_ranks.begin(), m_ranks.end(), hasSome))
      legend.add(QString::fromUtf8(kParts[part].name), PlotLegend::swatch(partColor(theme, part)));
  }
  const auto mark = [&](const QString& name, const QPen& pen) {
    legend.add(name, [pen](QPainter& p, const QRectF& rect) {
      p.setPen(pen);
      p.drawLine(QPointF(rect.center().x(), rect.top()), QPointF(rect.center().x(), rect.bottom()));
    });
  };
  if (m_predicted > 0) mark(QStringLiteral("predicted"), QPen(theme.text, 1.5, Qt::DashLine));
  mark(QStringLiteral("peak"), QPen(theme.conflict, 1.5));
  legend.paint(painter, row, theme.textQuiet);
  painter.setFont(font());
}

void RankBars::paintRank(QPainter& painter, const QRect& row, const RankView& rank) const {
  const Theme theme = this->theme();
  const RankMemory& memory = rank.memory;
  const bool hasFailed = rank.phase == protocol::Phase::Failed;
  const bool hasSpark = row.width() > 420;
  const int left = row.left() + kMargin + kNameWidth;
  const int right = row.right() - kMargin - (hasSpark ? kSparkWidth + 10 : 0);
  const int lineHeight = painter.fontMetrics().height();
  const QRect above(left, row.top() + 4, right - left, lineHeight);
  const QRect program(left, above.bottom() + 3, right - left, kProgramBar);
  const QRect process(left, program.bottom() + 1, right - left, m_showsProcess ? kProcessBar : 0);
  const QRect below(left, process.bottom() + 2, right - left, lineHeight);

  painter.setPen(theme.text);
  painter.drawText(QRect(row.left() + kMargin, program.center().y() - 10, kNameWidth, 20),
                   Qt::AlignLeft | Qt::AlignVCenter, QStringLiteral("rank %1").arg(rank.rank));
  const bool hasFigures = memory.process() > 0;
  const QString sizes =
      hasFigures
          ? QStringLiteral("program %1, peak %2").arg(bytesText(memory.program()), bytesText(memory.peak.program))
          : QString();
  painter.drawText(above, Qt::AlignRight | Qt::AlignVCenter, sizes);
  painter.setPen(hasFailed ? theme.conflict : theme.textQuiet);
  const QString state = hasFailed && !rank.error.isEmpty() ? rank.error : rank.state();
  const QRect stateLine = above.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(sizes) - 8, 0);
  painter.drawText(stateLine, Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(state, Qt::ElideRight, std::max(0, stateLine.width())));
  painter.setPen(theme.textQuiet);
  if (hasFigures)
    painter.drawText(
        below, Qt::AlignRight | Qt::AlignVCenter,
        QStringLiteral("process %1, peak %2").arg(bytesText(memory.process()), bytesText(memory.peak.process)));

  paintBar(painter, program, memory, kOfProgram, memory.peak.program);
  if (m_showsProcess) paintBar(painter, process, memory, kOfProcess, memory.peak.process);
  paintPrediction(painter, program);
  if (hasSpark) paintSpark(painter, QRect(right + 10, row.top() + 4, kSparkWidth, row.height() - 8), rank);
}

/// One line: the rank, its state unless it ended normally, and its program's peak memory.
void RankBars::paintShort(QPainter& painter, const QRect& cell, const RankView& rank) const {
  const Theme theme = this->theme();
  const QFontMetrics metrics = painter.fontMetrics();
  const QRect line(cell.left() + kMargin, cell.top() + 4, cell.width() - 2 * kMargin, metrics.height());
  const QString name = QStringLiteral("rank %1").arg(rank.rank);
  const QString peak = rank.memory.peak.program > 0 ? bytesText(rank.memory.peak.program) : QString();
  painter.setPen(theme.text);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, name);
  painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, peak);
  const bool hasFailed = rank.phase == protocol::Phase::Failed;
  painter.setPen(hasFailed ? theme.conflict : theme.textQuiet);
  const QRect middle = line.adjusted(metrics.horizontalAdvance(name) + 8, 0, -metrics.horizontalAdvance(peak) - 8, 0);
  painter.drawText(middle, Qt::AlignLeft | Qt::AlignVCenter,
                   metrics.elidedText(rank.state(), Qt::ElideRight, std::max(0, middle.width())));
  const QRect bar(line.left(), line.bottom() + 2, line.width(), kShortBar);
  paintBar(painter, bar, rank.memory, kOfProgram, rank.memory.peak.program);
  paintPrediction(painter, bar);
}

void RankBars::paintPrediction(QPainter& painter, const QRect& bar) const {
  if (m_predicted <= 0) return;
  painter.setPen(QPen(theme().text, 1.5, Qt::DashLine));
  const double x = frameOf(bar).toX(static_cast<double>(m_predicted));
  painter.drawLine(QPointF(x, bar.top() - 3), QPointF(x, bar.bottom()));
}

/// The first `parts` categories in sequence, with a line at their peak.
void RankBars::paintBar(QPainter& painter, const QRect& bar, const RankMemory& memory, int parts,
                        std::int64_t peak) const {
  const Theme theme = this->theme();
  std::vector<PlotPart> shown;
  for (int part = 0; part < parts; ++part)
    shown.push_back({static_cast<double>(memory.*kParts[part].bytes), partColor(theme, part)});
  paintStack(painter, theme, bar, static_cast<double>(m_scale), shown);
  painter.setPen(QPen(theme.border, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(bar);
  if (peak <= 0) return;
  painter.setPen(QPen(theme.conflict, 1.5));
  const double x = frameOf(bar).toX(static_cast<double>(peak));
  painter.drawLine(QPointF(x, bar.top()), QPointF(x, bar.bottom()));
}

void RankBars::paintSpark(QPainter& painter, const QRect& rect, const RankView& rank) const {
  const Theme theme = this->theme();
  painter.setPen(QPen(theme.border, 1));
  painter.drawLine(rect.bottomLeft(), rect.bottomRight());
  if (rank.history.size() < 2) return;
  const PlotFrame frame{QRectF(rect.topLeft() + QPoint(0, 1), rect.bottomRight()),
                        {1.0 - kSparkSamples, 0},
                        {0, static_cast<double>(m_sparkTop)}};
  QPolygonF line;
  for (std::size_t i = 0; i < rank.history.size(); ++i) {
    const double age = static_cast<double>(rank.history.size() - 1 - i);
    line << frame.at(-age, static_cast<double>(rank.history[i].process));
  }
  painter.setPen(QPen(theme.accent, 1.2));
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(line);
}

PlotTip RankBars::tipOf(int mark) const {
  const auto rank = static_cast<std::size_t>(mark);
  return {textOf(m_ranks[rank]), cellOf(rank)};
}

QString RankBars::textOf(const RankView& rank) const {
  QStringList lines{QStringLiteral("rank %1, process %2, %3").arg(rank.rank).arg(rank.pid).arg(rank.device)};
  for (const Part& part : kParts)
    lines << QStringLiteral("%1: %2").arg(QString::fromUtf8(part.name), bytesText(rank.memory.*part.bytes));
  lines << QStringLiteral("peak of the program: %1").arg(bytesText(rank.memory.peak.program))
        << QStringLiteral("peak of the process: %1").arg(bytesText(rank.memory.peak.process));
  if (rank.memory.total > 0) lines << QStringLiteral("device: %1").arg(bytesText(rank.memory.total));
  if (m_predicted > 0) lines << QStringLiteral("predicted for the program: %1").arg(bytesText(m_predicted));
  if (rank.collectives > 0) lines << countedText(static_cast<std::uint64_t>(rank.collectives), "collective");
  return lines.join(QLatin1Char('\n'));
}

}  // namespace cleave::views
