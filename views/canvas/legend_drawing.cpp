#include "canvas/legend_drawing.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <algorithm>

#include "canvas/quantities.h"
#include "canvas/scene_painter.h"

namespace cleave::views {
namespace {

constexpr int kSwatch = 16, kGap = 6, kPad = 8;
constexpr std::size_t kMostMeanings = 2;

QString tr(const char* text) {
  return QCoreApplication::translate("Legend", text);
}

QString shortName(Tint tint) {
  static const char* const names[kTintCount] = {"S0", "S1", "S2", "S3", "S4+", "expert", "R whole", "open"};
  return QLatin1String(names[static_cast<int>(tint)]);
}

QString formTooltip(LayerForm form, const LegendContent& content) {
  const plan::FormTally& tally = content.forms[static_cast<std::size_t>(form)];
  std::int64_t bytes = 0;
  for (const plan::FormTally& each : content.forms) bytes += each.weightBytes;
  QString text = describe(form) + QLatin1Char('\n') + countedText(tally.layers, tr("layer"));
  if (bytes > 0)
    text += tr(", %1 of weights (%2)").arg(bytesText(tally.weightBytes), percentText(double(tally.weightBytes) / double(bytes)));
  if (content.flops > 0) text += tr(", %1 of the forward FLOPs").arg(percentText(tally.flops / content.flops));
  return text + tr("\nClick to show only these");
}

}  // namespace

void setCounts(LegendContent& content, const SplitCounts* counts) {
  const SplitTally tally = counts ? counts->whole() : SplitTally();
  content.forms = tally.work.forms;
  content.values = tally.values;
  content.flops = tally.work.flops;
  for (int t = 0; t < kTintCount; ++t) {
    QStringList words;
    const bool isSplit = static_cast<Tint>(t) < Tint::Replicated;
    if (counts && isSplit)
      for (const auto& [meaning, count] : counts->meanings(static_cast<Tint>(t)))
        if (meaning != graph::Meaning::Unknown && words.size() < static_cast<qsizetype>(kMostMeanings))
          words << QString::fromUtf8(graph::toText(meaning).data(), static_cast<qsizetype>(graph::toText(meaning).size()));
    content.meanings[static_cast<std::size_t>(t)] = words.join(QStringLiteral(", "));
  }
}

std::vector<LegendDrawing::Entry> LegendDrawing::makeEntries(const SplitFilter& filter) const {
  std::vector<Entry> entries;
  if (!m_content.scale.title.isEmpty()) {
    if (m_content.changed > 0) entries.push_back({});
  } else {
    for (std::size_t i = 0; i < kLayerForms; ++i) {
      const auto form = static_cast<LayerForm>(i);
      if (m_content.forms[i].layers == 0 && !filter.has(form)) continue;
      if (entries.empty()) entries.push_back({tr("Layers"), {}, {}, {}, false, {}});
      entries.push_back({QStringLiteral("%1  %2").arg(formText(form), countText(m_content.forms[i].layers)),
                         formTooltip(form, m_content), form, {}, false, {}});
    }
    bool isFirst = true;
    for (std::size_t i = 0; i < kTintCount; ++i) {
      const auto tint = static_cast<Tint>(i);
      if (m_content.values[i] == 0 && !filter.has(tint)) continue;
      if (std::exchange(isFirst, false)) entries.push_back({tr("Values"), {}, {}, {}, false, {}});
      const QString& meaning = m_content.meanings[i];
      const QString name = meaning.isEmpty() ? shortName(tint) : shortName(tint) + QLatin1Char(' ') + meaning;
      entries.push_back({QStringLiteral("%1  %2").arg(name, countText(m_content.values[i])),
                         QStringLiteral("%1%2: %3\n%4").arg(describe(tint), meaning.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(meaning),
                                                          countedText(m_content.values[i], tr("value")), tr("Click to show only these")),
                         {}, tint, false, {}});
    }
    if (m_content.changed > 0) entries.push_back({});
  }
  if (m_content.changed > 0) {
    entries.back().isChange = true;
    entries.back().text = tr("%1 changed from A to B").arg(countText(m_content.changed));
  }
  return entries;
}

int LegendDrawing::rowHeight() const {
  return QFontMetrics(m_font).height() + 8;
}

int LegendDrawing::widthOf(const Entry& entry) const {
  const int text = QFontMetrics(m_font).horizontalAdvance(entry.text);
  return entry.isChoice() || entry.isChange ? kSwatch + text + 3 * kGap : text + kGap;
}

/// Left to right; values start a second row where they do not fit into the first. Answers the number of rows.
int LegendDrawing::place(std::vector<Entry>& entries, int width, int reserved) const {
  const auto values = std::find_if(entries.begin(), entries.end(), [](const Entry& e) { return e.tint.has_value(); });
  const std::size_t caption = values == entries.end() ? entries.size() : static_cast<std::size_t>(values - entries.begin()) - 1;
  const int left = kPad + (m_content.scale.title.isEmpty() ? 0 : scaleWidth());
  int all = left;
  for (const Entry& entry : entries) all += widthOf(entry) + kGap / 2;
  const bool isBroken = caption > 0 && all > width - reserved;
  int x = left, row = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const int w = widthOf(entries[i]);
    const bool isNewRow = (isBroken && i == caption) || (x + w > width - kPad && x > kPad && row > 0);
    if (isNewRow) x = kPad, ++row;
    if (i == caption && !isNewRow) x += 2 * kGap;
    entries[i].rect = QRect(x, row * rowHeight() + 2, w, rowHeight() - 3);
    x += w + kGap / 2;
  }
  return row + 1;
}

int LegendDrawing::heightFor(int width, int reserved) const {
  std::vector<Entry> entries = makeEntries({});
  return place(entries, width, reserved) * rowHeight() + 2;
}

void LegendDrawing::arrange(const QSize& size, int reserved, const SplitFilter& filter) {
  m_size = size;
  m_entries = makeEntries(filter);
  place(m_entries, size.width(), reserved);
  m_firstRowEnd = kPad + (m_content.scale.title.isEmpty() ? 0 : scaleWidth());
  for (const Entry& entry : m_entries)
    if (entry.rect.top() < rowHeight()) m_firstRowEnd = std::max(m_firstRowEnd, entry.rect.right());
}

void LegendDrawing::paint(QPainter& painter, const SplitFilter& filter, int focused) const {
  painter.fillRect(QRect(QPoint(), m_size), m_theme.groundRaised);
  painter.setPen(m_theme.border);
  painter.drawLine(0, m_size.height() - 1, m_size.width() - 1, m_size.height() - 1);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(m_font);
  if (!m_content.scale.title.isEmpty()) paintScale(painter, kPad);
  for (std::size_t i = 0; i < m_entries.size(); ++i)
    paintEntry(painter, m_entries[i], filter, static_cast<int>(i) == focused);
}

void LegendDrawing::paintEntry(QPainter& painter, const Entry& entry, const SplitFilter& filter, bool isFocused) const {
  if (!entry.isChoice() && !entry.isChange) {
    painter.setPen(m_theme.textQuiet);
    painter.drawText(entry.rect, Qt::AlignVCenter, entry.text);
    return;
  }
  const bool isChosen = (entry.form && filter.has(*entry.form)) || (entry.tint && filter.has(*entry.tint));
  const bool isFull = isChosen || !filter.isOn() || entry.isChange;
  if (isChosen || isFocused) {
    painter.setPen(isChosen ? m_theme.accent : m_theme.borderStrong);
    painter.setBrush(isChosen ? blend(m_theme.groundRaised, m_theme.accent, 0.12) : QColor(Qt::transparent));
    painter.drawRoundedRect(QRectF(entry.rect).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
  }
  painter.setOpacity(isFull ? 1 : 0.45);
  const QRectF swatch(entry.rect.left() + kGap, entry.rect.center().y() - kSwatch / 2 + 1.5, kSwatch, kSwatch - 2);
  if (entry.form) fillForm(painter, swatch, m_theme, *entry.form, 4);
  if (entry.tint) fillTint(painter, swatch, m_theme, *entry.tint, 4);
  const bool isOpen = entry.form == LayerForm::Open || entry.tint == Tint::Unassigned;
  QPen pen(entry.isChange ? m_theme.changed : m_theme.borderStrong, entry.isChange ? 2 : 1, isOpen ? Qt::DashLine : Qt::SolidLine);
  if (entry.isChange) pen.setDashPattern({2, 1.5});
  painter.setBrush(Qt::NoBrush);
  painter.setPen(pen);
  painter.drawRoundedRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5), entry.form ? 3 : 0, entry.form ? 3 : 0);
  painter.setOpacity(1);
  painter.setPen(isFull ? m_theme.text : m_theme.textQuiet);
  painter.drawText(entry.rect.adjusted(2 * kGap + kSwatch, 0, kGap, 0), Qt::AlignVCenter, entry.text);
}

int LegendDrawing::scaleWidth() const {
  const QFontMetrics metrics(m_font);
  int cell = 0;
  for (const QString& tick : m_content.scale.ticks) cell = std::max(cell, metrics.horizontalAdvance(tick) + 3 * kGap);
  return metrics.horizontalAdvance(m_content.scale.title + m_content.scale.note) + 6 * kGap +
         cell * static_cast<int>(m_content.scale.ticks.size());
}

/// What the colours say, then the numbers, each on the colour it stands for.
int LegendDrawing::paintScale(QPainter& painter, int left) const {
  const QFontMetrics metrics(m_font);
  const HeatScale& scale = m_content.scale;
  const int height = rowHeight();
  const auto write = [&](const QString& text, const QColor& color) {
    painter.setPen(color);
    painter.drawText(QRect(left, 0, m_size.width() - left, height), Qt::AlignVCenter, text);
    left += metrics.horizontalAdvance(text) + 2 * kGap;
  };
  // The explanation after the colon goes first where there is no room for it.
  write(scaleWidth() + kPad > m_size.width() ? scale.title.section(QLatin1Char(':'), 0, 0) : scale.title, m_theme.text);
  if (!scale.ticks.isEmpty()) {
    const auto count = scale.ticks.size();
    int cell = 0;
    for (const QString& tick : scale.ticks) cell = std::max(cell, metrics.horizontalAdvance(tick) + 3 * kGap);
    const QRectF bar(left, 4.5, static_cast<double>(cell * count), height - 8);
    const double last = static_cast<double>(count - 1);
    for (int x = 0; x < bar.width(); ++x) {
      // Flat under each number, so that it stands on the very colour it names.
      const double at = std::clamp((x / static_cast<double>(cell) - 0.5) / last, 0.02, 1.0);
      painter.fillRect(QRectF(bar.left() + x, bar.top(), 1, bar.height()), m_theme.heat(at));
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(m_theme.borderStrong);
    painter.drawRect(bar);
    for (qsizetype i = 0; i < count; ++i) {
      const QRectF place(bar.left() + static_cast<double>(i * cell), bar.top(), cell, bar.height());
      const QString& text = scale.ticks[i];
      const QColor ground = m_theme.heat(std::max(0.02, static_cast<double>(i) / last));
      QRectF plate(0, 0, metrics.horizontalAdvance(text) + kGap, bar.height() - 1);
      plate.moveCenter(place.center());
      painter.fillRect(plate, ground);
      painter.setPen(m_theme.textOn(ground));
      painter.drawText(place, Qt::AlignCenter, text);
    }
    left += static_cast<int>(bar.width()) + 2 * kGap;
  }
  write(scale.note, m_theme.textQuiet);
  return left;
}

}  // namespace cleave::views
