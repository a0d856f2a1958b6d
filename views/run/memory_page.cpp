#include "views/run/memory_page.h"

#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "pipeline/report/node_names.h"
#include "views/base/rich_text.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/widgets/link_text.h"
#include "views/widgets/tables.h"

namespace cleave::views {

using pipeline::MemoryComparison;
using pipeline::MemoryLine;

namespace {
constexpr int kBar = 9;

/// The parts of the program's memory, which the prediction covers, in the order of the bars. The process's context and
/// communication buffers are not included.
constexpr protocol::MemoryKind kKinds[] = {protocol::MemoryKind::Parameters, protocol::MemoryKind::Fixed,
                                           protocol::MemoryKind::Gradients,  protocol::MemoryKind::Optimizer,
                                           protocol::MemoryKind::Saved,      protocol::MemoryKind::Transient};

QColor memoryColor(const Theme& theme, std::string_view name) {
  using protocol::MemoryKind;
  const auto is = [name](MemoryKind kind) { return protocol::toText(kind) == name; };
  if (is(MemoryKind::Parameters)) return theme.color(Tint::Expert);
  if (is(MemoryKind::Gradients)) return theme.color(LayerSplit::Row);
  if (is(MemoryKind::Optimizer)) return theme.color(LayerSplit::Column);
  if (is(MemoryKind::Saved)) return theme.color(Tint::Dim2);
  if (is(MemoryKind::Transient)) return theme.color(Tint::Dim1);
  return theme.color(Tint::Replicated);
}

const MemoryLine* lineOf(const MemoryComparison& memory, std::string_view name) {
  const auto found = std::find_if(memory.lines.begin(), memory.lines.end(),
                                  [name](const MemoryLine& line) { return line.name == name; });
  return found == memory.lines.end() ? nullptr : &*found;
}

QString offText(const MemoryLine& line) {
  if (!line.predicted || *line.predicted == 0) return line.measured == 0 ? QString() : QStringLiteral("–");
  const double off = static_cast<double>(line.measured) / static_cast<double>(*line.predicted) - 1;
  if (std::abs(off) < 5e-4) return QStringLiteral("±0 %");
  if (off > 9) return QStringLiteral("%1×").arg(off + 1, 0, 'f', 0);
  const QString sign = off > 0 ? QStringLiteral("+") : QStringLiteral("−");
  return QStringLiteral("%1%2 %").arg(sign).arg(std::abs(100 * off), 0, 'f', std::abs(off) < 0.1 ? 1 : 0);
}

QString tailText(const MemoryComparison& memory) {
  return QStringLiteral("%1 %2").arg(bytesText(memory.peak.measured), offText(memory.peak));
}
}  // namespace

MemoryBars::MemoryBars(QWidget* parent) : PlotWidget(QStringLiteral("Memory by category"), parent, 0) {
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

int MemoryBars::chosen() const {
  return currentMark() < markCount() ? m_ranks[static_cast<std::size_t>(currentMark())].first : 0;
}

void MemoryBars::setMemory(const std::map<int, MemoryComparison>& byRank) {
  const int before = chosen();
  m_ranks.assign(byRank.begin(), byRank.end());
  m_most = 1;
  for (const auto& [rank, memory] : m_ranks) {
    std::int64_t measured = 0, predicted = 0;
    for (const protocol::MemoryKind kind : kKinds) {
      const MemoryLine* line = lineOf(memory, protocol::toText(kind));
      if (!line) continue;
      measured += line->measured;
      predicted += line->predicted.value_or(0);
    }
    m_most = std::max({m_most, measured, predicted});
  }
  const auto same =
      std::find_if(m_ranks.begin(), m_ranks.end(), [before](const auto& entry) { return entry.first == before; });
  dataChanged(same == m_ranks.end() ? 0 : static_cast<int>(same - m_ranks.begin()));
  updateGeometry();
  emit chosenChanged();
}

int MemoryBars::rowHeight() const { return std::max(fontMetrics().height() + 4, 2 * kBar + 10); }
int MemoryBars::nameWidth() const { return fontMetrics().horizontalAdvance(QStringLiteral("rank 00")) + 10; }
PlotLegend MemoryBars::legend() const {
  PlotLegend legend(font());
  for (const protocol::MemoryKind kind : kKinds)
    legend.add(toQ(protocol::toText(kind)), PlotLegend::swatch(memoryColor(theme(), protocol::toText(kind))));
  return legend;
}
int MemoryBars::tailWidth() const {
  int width = fontMetrics().horizontalAdvance(QStringLiteral("000 MiB +00 %"));
  for (const auto& [rank, memory] : m_ranks) width = std::max(width, fontMetrics().horizontalAdvance(tailText(memory)));
  return width + 10;
}

QSize MemoryBars::minimumSizeHint() const {
  constexpr int kShortestBar = 60;
  return {2 * kSide + nameWidth() + kShortestBar + tailWidth(), sizeHint().height()};
}

QSize MemoryBars::sizeHint() const {
  return {420, legendHeight() + static_cast<int>(m_ranks.size()) * rowHeight() + 4};
}

QRect MemoryBars::rowOf(int mark) const { return {0, legendHeight() + mark * rowHeight(), width(), rowHeight()}; }

int MemoryBars::markAt(const QPointF& position) const {
  const int y = position.toPoint().y() - legendHeight(), row = y / rowHeight();
  return y >= 0 && row < markCount() ? row : -1;
}

int MemoryBars::rankAt(const QPoint& position) const {
  const int mark = markAt(position);
  return mark < 0 ? -1 : m_ranks[static_cast<std::size_t>(mark)].first;
}

void MemoryBars::resizeEvent(QResizeEvent* event) {
  PlotWidget::resizeEvent(event);
  updateGeometry();  // the legend may need more rows
}

void MemoryBars::paintPlot(QPainter& painter) {
  const Theme theme = this->theme();
  legend().paint(painter, QRect(kSide, 2, width() - 2 * kSide, legendHeight()), theme.textQuiet);
  const int name = nameWidth(), tail = tailWidth();
  for (int mark = 0; mark < markCount(); ++mark) {
    const auto& [rank, memory] = m_ranks[static_cast<std::size_t>(mark)];
    const QRect row = rowOf(mark);
    if (mark == currentMark()) {
      painter.fillRect(row, blend(theme.groundRaised, theme.accent, 0.14));
      painter.fillRect(QRect(0, row.top(), 3, row.height()), theme.accent);
    }
    painter.setPen(theme.text);
    painter.drawText(row.adjusted(kSide, 0, 0, 0), Qt::AlignVCenter, QStringLiteral("rank %1").arg(rank));
    painter.drawText(row.adjusted(0, 0, -kSide, 0), Qt::AlignVCenter | Qt::AlignRight, tailText(memory));
    const int top = row.top() + (row.height() - 2 * kBar - 2) / 2;
    const QRectF bars(kSide + name, top, std::max(10, width() - 2 * kSide - name - tail), kBar);
    paintBar(painter, bars, memory, true);
    paintBar(painter, bars.translated(0, kBar + 2), memory, false);
  }
}

/// The upper, lighter bar is the prediction; the lower, solid one is the measurement.
void MemoryBars::paintBar(QPainter& painter, const QRectF& bar, const MemoryComparison& memory,
                          bool isPrediction) const {
  const Theme theme = this->theme();
  std::vector<PlotPart> parts;
  for (const protocol::MemoryKind kind : kKinds) {
    const MemoryLine* line = lineOf(memory, protocol::toText(kind));
    const std::int64_t bytes = !line ? 0 : isPrediction ? line->predicted.value_or(0) : line->measured;
    const QColor color = memoryColor(theme, protocol::toText(kind));
    parts.push_back({static_cast<double>(bytes), isPrediction ? blend(theme.ground, color, 0.45) : color});
  }
  paintStack(painter, theme, bar, static_cast<double>(m_most), parts);
}

PlotTip MemoryBars::tipOf(int mark) const {
  const auto& [rank, memory] = m_ranks[static_cast<std::size_t>(mark)];
  QStringList lines{QStringLiteral("rank %1: measured, predicted").arg(rank)};
  for (const MemoryLine& line : memory.lines)
    lines << QStringLiteral("%1: %2, %3")
                 .arg(toQ(line.name), bytesText(line.measured),
                      line.predicted ? bytesText(*line.predicted) : QStringLiteral("–"));
  return {lines.join(QLatin1Char('\n')), rowOf(mark)};
}

MemoryPage::MemoryPage(const Runs& runs, Selection& selection, QWidget* parent)
    : QWidget(parent),
      m_runs(runs),
      m_bars(new MemoryBars),
      m_scroll(new QScrollArea),
      m_numbers(new LinkText),
      m_split(new QSplitter),
      m_empty(makeEmptyLabel({})),
      m_content(new QWidget),
      m_stack(new QStackedLayout(this)) {
  m_scroll->setWidget(m_bars);
  m_scroll->setWidgetResizable(true);
  m_scroll->setFrameShape(QFrame::NoFrame);
  m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  // Numbers must never be truncated.
  const QFontMetrics metrics(font());
  constexpr int kGaps = 90;
  m_numbers->setMinimumSize(metrics.horizontalAdvance(QStringLiteral("communication buffers")) +
                                2 * metrics.horizontalAdvance(QStringLiteral("000.0 MiB")) +
                                metrics.horizontalAdvance(QStringLiteral("+00.0 %")) + kGaps,
                            60);
  m_split->addWidget(m_scroll);
  m_split->addWidget(m_numbers);
  m_split->setChildrenCollapsible(false);
  m_split->setStretchFactor(0, 3);
  m_split->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(m_content);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addWidget(m_split);
  m_stack->addWidget(m_empty);
  m_stack->addWidget(m_content);
  connect(m_bars, &MemoryBars::chosenChanged, this, &MemoryPage::showRank);
  connect(m_numbers, &LinkText::followed, this, [this, &selection](const Target& target) {
    selection.follow(target);
    emit graphWanted();
  });
}

void MemoryPage::showRun() {
  const RunState* run = m_runs.state();
  const bool hasMemory = run && run->report && !run->report->memory.empty();
  m_stack->setCurrentWidget(hasMemory ? m_content : static_cast<QWidget*>(m_empty));
  if (hasMemory) {
    m_bars->setMemory(run->report->memory);
    m_scroll->setMinimumWidth(m_bars->minimumSizeHint().width() + m_scroll->verticalScrollBar()->sizeHint().width());
    return;
  }
  m_empty->setText(
      run && run->report
          ? QStringLiteral("The run failed before a rank reported its memory by category.")
          : QStringLiteral("After a run, this shows each rank's memory by category, with the prediction."));
}

/// Numbers are next to the bars if there is room for both, else below them.
void MemoryPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  constexpr int kBothWide = 760;
  m_split->setOrientation(width() >= kBothWide ? Qt::Horizontal : Qt::Vertical);
}

void MemoryPage::showRank() {
  const RunState* run = m_runs.state();
  if (!run || !run->report || !run->report->memory.contains(m_bars->chosen())) return;
  const MemoryComparison& memory = run->report->memory.at(m_bars->chosen());
  const TextColors colors = TextColors::of(palette());
  const auto head = [&colors](const QStringList& names) {
    QStringList cells{nameCell(quiet(names[0], colors))};
    for (qsizetype i = 1; i < names.size(); ++i) cells << numberCell(quiet(names[i], colors));
    return row(cells);
  };
  std::vector<MemoryLine> lines = memory.lines;
  lines.push_back(memory.peak);
  QStringList rows{
      head({QStringLiteral("part"), QStringLiteral("predicted"), QStringLiteral("measured"), QStringLiteral("off")})};
  for (const MemoryLine& line : lines)
    rows << row({nameCell(toQ(line.name)),
                 numberCell(line.predicted ? bytesText(*line.predicted) : QStringLiteral("–")),
                 numberCell(bytesText(line.measured)), numberCell(offText(line))});
  QString html = richTextStyle(palette()) +
                 (run->settings.training.isAsked() ? QStringLiteral("<b>rank %1</b>, peak of the last step")
                                                   : QStringLiteral("<b>rank %1</b>, peak of the last forward pass"))
                     .arg(m_bars->chosen()) +
                 table(rows);
  if (!memory.largest.empty()) {
    QStringList nodes{head({QStringLiteral("node"), QStringLiteral("predicted"), QStringLiteral("measured")})};
    for (const pipeline::NodeDifference& node : memory.largest)
      nodes << row({nameCell(nodeLink(*run->plan->graph, node.node)), numberCell(bytesText(node.predicted)),
                    numberCell(bytesText(node.measured))});
    html += heading(QStringLiteral("Saved activations with the largest deviation"), colors) + table(nodes);
  } else {
    html +=
        QStringLiteral("<p>%1</p>")
            .arg(quiet(run->settings.training.isAsked()
                           ? QStringLiteral("Every node saves as many bytes for the backward pass as predicted.")
                           : QStringLiteral(
                                 "A forward pass saves no activations. Train to compare saved activations per node."),
                       colors));
  }
  m_numbers->showHtml(html, false);
}

}  // namespace cleave::views
