#include "canvas/legend.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "canvas/labels.h"
#include "canvas/scene_painter.h"

namespace cleave::views {
namespace {
constexpr int kSwatch = 14, kGap = 6, kPad = 8;
}

Legend::Legend(QWidget* parent) : QWidget(parent), m_theme(Theme::light()) {
  setFocusPolicy(Qt::TabFocus);
  setAccessibleName(tr("Legend of placements"));
  setAccessibleDescription(tr("Left and right choose an entry, space shows only its values"));
}

void Legend::setTheme(const Theme& theme) {
  m_theme = theme;
  update();
}

void Legend::setCounts(const std::array<std::uint32_t, kTintCount>& counts, std::uint32_t conflicts) {
  if (counts == m_counts && conflicts == m_conflicts && !m_entries.empty()) return;
  m_counts = counts;
  m_conflicts = conflicts;
  arrange();
  update();
}

void Legend::setScale(const HeatScale& scale) {
  if (scale == m_scale) return;
  m_scale = scale;
  setAccessibleName(scale.title.isEmpty() ? tr("Legend of placements") : scale.title);
  arrange();
  update();
}

void Legend::setChanged(std::size_t nodes) {
  if (nodes == m_changed) return;
  m_changed = nodes;
  update();
}

void Legend::setStatus(const QString& status) {
  if (status == m_status) return;
  m_status = status;
  arrange();
  update();
}

std::uint32_t Legend::dimmedTints() const {
  return m_chosen == 0 ? 0 : ~m_chosen & ((1u << kTintCount) - 1);
}

QSize Legend::sizeHint() const {
  return {400, fontMetrics().height() + 12};
}

QString Legend::entryText(Tint tint) const {
  static const char* const names[kTintCount] = {"S0", "S1", "S2", "S3", "S4+", "expert", "R whole", "open"};
  const int i = static_cast<int>(tint);
  return QStringLiteral("%1  %2").arg(QLatin1String(names[i]), countText(m_counts[static_cast<std::size_t>(i)]));
}

void Legend::arrange() {
  m_entries.clear();
  if (!m_scale.title.isEmpty()) return;
  int x = kPad;
  for (int i = 0; i < kTintCount; ++i) {
    if (m_counts[static_cast<std::size_t>(i)] == 0 && !(m_chosen & (1u << i))) continue;
    const Tint tint = static_cast<Tint>(i);
    const int width = kSwatch + kGap + fontMetrics().horizontalAdvance(entryText(tint)) + 2 * kGap;
    m_entries.push_back({tint, QRect(x, 3, width, height() - 6)});
    x += width + kGap;
  }
}

bool Legend::event(QEvent* event) {
  if (event->type() == QEvent::FocusIn) {
    const auto reason = static_cast<QFocusEvent*>(event)->reason();
    m_showsFocus = reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason;
    update();
  } else if (event->type() == QEvent::FocusOut) {
    m_showsFocus = false;
    update();
  }
  if (event->type() == QEvent::Resize || event->type() == QEvent::FontChange) arrange();
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    for (const Entry& entry : m_entries)
      if (entry.rect.contains(help->pos())) {
        QToolTip::showText(help->globalPos(),
                           tr("%1: %2 values\nClick to show only these")
                               .arg(describe(entry.tint), countText(m_counts[static_cast<int>(entry.tint)])),
                           this, entry.rect);
        return true;
      }
    QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void Legend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.groundRaised);
  painter.setPen(m_theme.border);
  painter.drawLine(rect().bottomLeft(), rect().bottomRight());
  painter.setRenderHint(QPainter::Antialiasing);
  int taken = m_scale.title.isEmpty() ? paintTints(painter) : paintScale(painter, kPad);
  if (m_changed > 0) taken = paintChanged(painter, taken);
  const QRect room = rect().adjusted(taken + kPad, 0, -kPad, 0);
  painter.setPen(m_theme.textQuiet);
  painter.drawText(room, Qt::AlignVCenter | Qt::AlignRight,
                   fontMetrics().elidedText(m_status, Qt::ElideLeft, room.width()));
}

int Legend::paintTints(QPainter& painter) const {
  for (std::size_t i = 0; i < m_entries.size(); ++i) {
    const Entry& entry = m_entries[i];
    const bool isChosen = m_chosen & (1u << static_cast<int>(entry.tint));
    if (isChosen || (m_showsFocus && static_cast<int>(i) == m_focus)) {
      painter.setPen(isChosen ? m_theme.accent : m_theme.borderStrong);
      painter.setBrush(isChosen ? blend(m_theme.groundRaised, m_theme.accent, 0.12) : QColor(Qt::transparent));
      painter.drawRoundedRect(QRectF(entry.rect).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    }
    painter.setOpacity(m_chosen == 0 || isChosen ? 1 : 0.45);
    const QRectF swatch(entry.rect.left() + kGap, entry.rect.center().y() - kSwatch / 2 + 0.5, kSwatch, kSwatch);
    fillTint(painter, swatch, m_theme, entry.tint, 4);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(m_theme.borderStrong, 1, entry.tint == Tint::Unassigned ? Qt::DashLine : Qt::SolidLine));
    painter.drawRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5));
    painter.setOpacity(1);
    painter.setPen(m_chosen == 0 || isChosen ? m_theme.text : m_theme.textQuiet);
    painter.drawText(entry.rect.adjusted(2 * kGap + kSwatch, 0, 0, 0), Qt::AlignVCenter, entryText(entry.tint));
  }
  return m_entries.empty() ? kPad : m_entries.back().rect.right() + kPad;
}

/// What the colours say, then the numbers, each on the colour it stands for.
int Legend::paintScale(QPainter& painter, int left) const {
  const auto write = [&](const QString& text, const QColor& color) {
    painter.setPen(color);
    painter.drawText(QRect(left, 0, width() - left, height()), Qt::AlignVCenter, text);
    left += fontMetrics().horizontalAdvance(text) + 2 * kGap;
  };
  // The explanation after the colon goes first where there is no room for it.
  const int wanted = fontMetrics().horizontalAdvance(m_scale.title + m_scale.ticks.join(QString()) + m_scale.note);
  const int gaps = static_cast<int>(m_scale.ticks.size() + 3) * 3 * kGap;
  write(wanted + gaps > width() ? m_scale.title.section(QLatin1Char(':'), 0, 0) : m_scale.title, m_theme.text);
  if (!m_scale.ticks.isEmpty()) {
    const auto count = m_scale.ticks.size();
    int cell = 0;
    for (const QString& tick : m_scale.ticks) cell = std::max(cell, fontMetrics().horizontalAdvance(tick) + 3 * kGap);
    const QRectF bar(left, 4.5, static_cast<double>(cell * count), height() - 10);
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
      const QString& text = m_scale.ticks[i];
      const QColor ground = m_theme.heat(std::max(0.02, static_cast<double>(i) / last));
      QRectF plate(0, 0, fontMetrics().horizontalAdvance(text) + kGap, bar.height() - 1);
      plate.moveCenter(place.center());
      painter.fillRect(plate, ground);
      painter.setPen(m_theme.textOn(ground));
      painter.drawText(place, Qt::AlignCenter, text);
    }
    left += static_cast<int>(bar.width()) + 2 * kGap;
  }
  write(m_scale.note, m_theme.textQuiet);
  return left;
}

int Legend::paintChanged(QPainter& painter, int left) const {
  const QRectF swatch(left + kGap, (height() - kSwatch) / 2 + 0.5, kSwatch, kSwatch - 1);
  QPen pen(m_theme.changed, 2);
  pen.setDashPattern({2, 1.5});
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(swatch, 3, 3);
  const QString text =
      m_changed == 1 ? tr("1 changed from A to B") : tr("%1 changed from A to B").arg(countText(m_changed));
  painter.setPen(m_theme.text);
  const int textLeft = left + kSwatch + 2 * kGap;
  painter.drawText(QRect(textLeft, 0, width() - textLeft, height()), Qt::AlignVCenter, text);
  return textLeft + fontMetrics().horizontalAdvance(text) + kPad;
}

void Legend::toggle(Tint tint) {
  m_chosen ^= 1u << static_cast<int>(tint);
  update();
  emit filterChanged(dimmedTints());
}

void Legend::mousePressEvent(QMouseEvent* event) {
  for (const Entry& entry : m_entries)
    if (event->button() == Qt::LeftButton && entry.rect.contains(event->pos())) return toggle(entry.tint);
}

void Legend::keyPressEvent(QKeyEvent* event) {
  const int count = static_cast<int>(m_entries.size());
  if (count == 0) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left: m_focus = (m_focus + count - 1) % count; break;
    case Qt::Key_Right: m_focus = (m_focus + 1) % count; break;
    case Qt::Key_Space:
    case Qt::Key_Return: toggle(m_entries[static_cast<std::size_t>(std::min(m_focus, count - 1))].tint); break;
    default: return QWidget::keyPressEvent(event);
  }
  update();
}

}  // namespace cleave::views
