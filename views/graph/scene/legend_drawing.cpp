#include "views/graph/scene/legend_drawing.h"

#include <QFontMetrics>
#include <algorithm>

#include "plan/text/shares_text.h"
#include "views/base/quantities.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/scene/fills.h"

namespace cleave::views {
namespace {

constexpr int kSwatch = 16, kGap = 6, kPad = 8;
constexpr std::size_t kMostMeanings = 2;

QString shortName(Tint tint) {
  static const char* const names[kTintCount] = {"S0", "S1", "S2", "S3", "S4+", "expert", "R", "open"};
  return QLatin1String(names[static_cast<int>(tint)]);
}

QString splitTooltip(LayerSplit split, const LegendContent& content) {
  const plan::LayerTally& tally = content.splits[static_cast<std::size_t>(split)];
  std::int64_t bytes = 0;
  for (const plan::LayerTally& each : content.splits) bytes += each.weightBytes;
  QString text = describe(split) + QLatin1Char('\n') + countedText(tally.layers, QStringLiteral("layer"));
  if (bytes > 0)
    text += QStringLiteral(", %1 of weights (%2)")
                .arg(bytesText(tally.weightBytes), percentText(double(tally.weightBytes) / double(bytes)));
  if (content.flops > 0)
    text += QStringLiteral(", %1 of the forward FLOPs").arg(percentText(tally.flops / content.flops));
  return text + QStringLiteral("\nClick to show only these");
}

}  // namespace

void setCounts(LegendContent& content, const SplitCounts* counts) {
  const SplitTally tally = counts ? counts->whole() : SplitTally();
  content.splits = tally.work.splits;
  content.values = tally.values;
  content.flops = tally.work.flops;
  for (int t = 0; t < kTintCount; ++t) {
    QStringList words;
    const bool isSplit = static_cast<Tint>(t) < Tint::Replicated;
    if (counts && isSplit)
      for (const auto& [meaning, count] : counts->meanings(static_cast<Tint>(t)))
        if (meaning != graph::Meaning::Unknown && words.size() < static_cast<qsizetype>(kMostMeanings))
          words << QString::fromUtf8(graph::toText(meaning).data(),
                                     static_cast<qsizetype>(graph::toText(meaning).size()));
    content.meanings[static_cast<std::size_t>(t)] = words.join(QStringLiteral(", "));
  }
}

std::vector<LegendDrawing::Entry> LegendDrawing::makeEntries(const SplitFilter& filter, bool hasMeanings) const {
  std::vector<Entry> entries = scaleEntries();
  if (!entries.empty()) {
    if (m_content.changed > 0) entries.push_back({});
  } else {
    for (std::size_t i = 0; i < kLayerSplits; ++i) {
      const auto split = static_cast<LayerSplit>(i);
      if (m_content.splits[i].layers == 0 && !filter.has(split)) continue;
      if (entries.empty()) entries.push_back({.text = QStringLiteral("Layers")});
      entries.push_back(
          {.text = QStringLiteral("%1  %2").arg(strategyText(split), countText(m_content.splits[i].layers)),
           .tooltip = splitTooltip(split, m_content),
           .split = split});
    }
    bool isFirst = true;
    for (std::size_t i = 0; i < kTintCount; ++i) {
      const auto tint = static_cast<Tint>(i);
      if (m_content.values[i] == 0 && !filter.has(tint)) continue;
      if (std::exchange(isFirst, false)) entries.push_back({.text = QStringLiteral("Values")});
      const QString& meaning = m_content.meanings[i];
      const bool isShort = meaning.isEmpty() || !hasMeanings;
      const QString name = isShort ? shortName(tint) : shortName(tint) + QLatin1Char(' ') + meaning;
      const QString of = meaning.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(meaning);
      entries.push_back(
          {.text = QStringLiteral("%1  %2").arg(name, countText(m_content.values[i])),
           .tooltip = QStringLiteral("%1%2: %3\n%4")
                          .arg(describe(tint), of, countedText(m_content.values[i], QStringLiteral("value")),
                               QStringLiteral("Click to show only these")),
           .tint = tint});
    }
    if (m_content.changed > 0) entries.push_back({});
  }
  if (m_content.changed > 0) {
    entries.back().isChange = true;
    entries.back().text =
        QStringLiteral("%1 changed from A to B").arg(countedText(m_content.changed, QStringLiteral("node")));
  }
  return entries;
}

/// The scale's title, its numbers on their colours, and its note.
std::vector<LegendDrawing::Entry> LegendDrawing::scaleEntries() const {
  const HeatScale& scale = m_content.scale;
  std::vector<Entry> entries;
  if (scale.title.isEmpty()) return entries;
  entries.push_back({.text = scale.title, .part = Entry::Part::Title});
  if (!scale.ticks.isEmpty()) entries.push_back({.part = Entry::Part::Bar});
  if (!scale.note.isEmpty()) entries.push_back({.text = scale.note, .part = Entry::Part::Note});
  return entries;
}

/// Without room for the whole title, the explanation after its colon is left out. A note wider than a row is shortened,
/// and its tooltip has the full text.
void LegendDrawing::fitScale(std::vector<Entry>& entries, int width) const {
  const int room = width - 2 * kPad;
  int all = 0;
  for (const Entry& entry : entries) all += widthOf(entry) + kGap / 2;
  for (Entry& entry : entries) {
    if (entry.part == Entry::Part::Title && all > room) {
      entry.tooltip = entry.text;
      entry.text = entry.text.section(QLatin1Char(':'), 0, 0);
    }
    if (entry.part != Entry::Part::Note || widthOf(entry) <= room) continue;
    entry.tooltip = entry.text;
    entry.text = QFontMetrics(m_font).elidedText(entry.text, Qt::ElideRight, std::max(1, room - kGap));
  }
}

int LegendDrawing::rowHeight() const { return QFontMetrics(m_font).height() + 8; }

int LegendDrawing::widthOf(const Entry& entry) const {
  if (entry.part == Entry::Part::Bar) return barCell() * static_cast<int>(m_content.scale.ticks.size()) + kGap;
  const int text = QFontMetrics(m_font).horizontalAdvance(entry.text);
  return entry.isChoice() || entry.isChange ? kSwatch + text + 3 * kGap : text + kGap;
}

/// Places entries left to right and starts a new row when one is full. Values start a row if they do not fit into the
/// first. Returns the number of rows.
int LegendDrawing::place(std::vector<Entry>& entries, int width, int reserved) const {
  fitScale(entries, width);
  const auto values = std::find_if(entries.begin(), entries.end(), [](const Entry& e) { return e.tint.has_value(); });
  const std::size_t caption =
      values == entries.end() ? entries.size() : static_cast<std::size_t>(values - entries.begin()) - 1;
  int all = kPad;
  for (const Entry& entry : entries) all += widthOf(entry) + kGap / 2;
  const bool isBroken = caption > 0 && all > width - reserved;
  int x = kPad, row = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const int w = widthOf(entries[i]);
    const bool isNewRow = (isBroken && i == caption) || (x + w > width - kPad && x > kPad);
    if (isNewRow) x = kPad, ++row;
    if (i == caption && !isNewRow) x += 2 * kGap;
    entries[i].rect = QRect(x, row * rowHeight() + 2, w, rowHeight() - 3);
    x += w + kGap / 2;
  }
  return row + 1;
}

LegendDrawing::Placed LegendDrawing::placed(int width, int reserved, const SplitFilter& filter) const {
  const auto placedWith = [&](bool hasMeanings) {
    Placed result{makeEntries(filter, hasMeanings)};
    result.rows = place(result.entries, width, reserved);
    return result;
  };
  constexpr int kUsualRows = 2;  // one for layers, one for values
  Placed full = placedWith(true);
  if (full.rows <= kUsualRows) return full;
  Placed shorter = placedWith(false);
  return shorter.rows < full.rows ? shorter : full;
}

int LegendDrawing::heightFor(int width, int reserved) const {
  return placed(width, reserved, {}).rows * rowHeight() + 2;
}

void LegendDrawing::arrange(const QSize& size, int reserved, const SplitFilter& filter) {
  m_size = size;
  m_entries = placed(size.width(), reserved, filter).entries;
  m_firstRowEnd = kPad;
  for (const Entry& entry : m_entries)
    if (entry.rect.top() < rowHeight()) m_firstRowEnd = std::max(m_firstRowEnd, entry.rect.right());
}

void LegendDrawing::paint(QPainter& painter, const SplitFilter& filter, int focused) const {
  painter.fillRect(QRect(QPoint(), m_size), m_theme.groundRaised);
  painter.setPen(m_theme.border);
  painter.drawLine(0, m_size.height() - 1, m_size.width() - 1, m_size.height() - 1);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(m_font);
  for (std::size_t i = 0; i < m_entries.size(); ++i)
    paintEntry(painter, m_entries[i], filter, static_cast<int>(i) == focused);
}

void LegendDrawing::paintEntry(QPainter& painter, const Entry& entry, const SplitFilter& filter, bool isFocused) const {
  if (entry.part == Entry::Part::Bar) return paintBar(painter, entry.rect);
  if (!entry.isChoice() && !entry.isChange) {
    painter.setPen(entry.part == Entry::Part::Title ? m_theme.text : m_theme.textQuiet);
    painter.drawText(entry.rect, Qt::AlignVCenter, entry.text);
    return;
  }
  const bool isChosen = (entry.split && filter.has(*entry.split)) || (entry.tint && filter.has(*entry.tint));
  const bool isFull = isChosen || !filter.isOn() || entry.isChange;
  if (isChosen || isFocused) {
    painter.setPen(isChosen ? m_theme.accent : m_theme.borderStrong);
    painter.setBrush(isChosen ? blend(m_theme.groundRaised, m_theme.accent, 0.12) : QColor(Qt::transparent));
    painter.drawRoundedRect(QRectF(entry.rect).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
  }
  painter.setOpacity(isFull ? 1 : 0.45);
  const QRectF swatch(entry.rect.left() + kGap, entry.rect.center().y() - (kSwatch - 3) / 2.0, kSwatch, kSwatch - 2);
  if (entry.split) fillForm(painter, swatch, m_theme, *entry.split, 4);
  if (entry.tint) fillTint(painter, swatch, m_theme, *entry.tint, 4);
  const bool isOpen = entry.split == LayerSplit::Open || entry.tint == Tint::Unassigned;
  QPen pen(entry.isChange ? m_theme.changed : m_theme.borderStrong, entry.isChange ? 2 : 1,
           isOpen ? Qt::DashLine : Qt::SolidLine);
  if (entry.isChange) pen.setDashPattern({2, 1.5});
  painter.setBrush(Qt::NoBrush);
  painter.setPen(pen);
  painter.drawRoundedRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5), entry.split ? 3 : 0, entry.split ? 3 : 0);
  painter.setOpacity(1);
  painter.setPen(isFull ? m_theme.text : m_theme.textQuiet);
  painter.drawText(entry.rect.adjusted(2 * kGap + kSwatch, 0, kGap, 0), Qt::AlignVCenter, entry.text);
}

int LegendDrawing::barCell() const {
  int cell = 0;
  for (const QString& tick : m_content.scale.ticks)
    cell = std::max(cell, QFontMetrics(m_font).horizontalAdvance(tick) + 3 * kGap);
  return cell;
}

void LegendDrawing::paintBar(QPainter& painter, const QRect& rect) const {
  const QFontMetrics metrics(m_font);
  const QStringList& ticks = m_content.scale.ticks;
  const int cell = barCell();
  const QRectF bar(rect.left(), rect.top() + 2.5, static_cast<double>(cell * ticks.size()), rowHeight() - 8);
  const double last = static_cast<double>(ticks.size() - 1);
  for (int x = 0; x < bar.width(); ++x) {
    // Flat below each number, so that the number is on exactly the colour it names.
    const double at = std::clamp((x / static_cast<double>(cell) - 0.5) / last, 0.02, 1.0);
    painter.fillRect(
        QRectF(bar.left() + x, bar.top(), 1, bar.height()),
        m_content.scale.isAgreement ? agreementColor(m_theme, static_cast<Agreement>(x / cell)) : m_theme.heat(at));
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(m_theme.borderStrong);
  painter.drawRect(bar);
  for (qsizetype i = 0; i < ticks.size(); ++i) {
    const QRectF place(bar.left() + static_cast<double>(i * cell), bar.top(), cell, bar.height());
    const QColor ground = m_content.scale.isAgreement ? agreementColor(m_theme, static_cast<Agreement>(i))
                                                      : m_theme.heat(std::max(0.02, static_cast<double>(i) / last));
    QRectF plate(0, 0, metrics.horizontalAdvance(ticks[i]) + kGap, bar.height() - 1);
    plate.moveCenter(place.center());
    painter.fillRect(plate, ground);
    painter.setPen(m_theme.textOn(ground));
    painter.drawText(place, Qt::AlignCenter, ticks[i]);
  }
}

}  // namespace cleave::views
