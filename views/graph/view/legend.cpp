#include "views/graph/view/legend.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace cleave::views {
namespace {
constexpr int kLegendPad = 8;
}

Legend::Legend(QWidget* parent) : QWidget(parent), m_drawing(Theme::light(), font()), m_theme(Theme::light()) {
  setFocusPolicy(Qt::TabFocus);
  setAccessibleName(QStringLiteral("Legend"));
  setAccessibleDescription(QStringLiteral("Left and right select an entry, space shows only its layers or values"));
}

void Legend::setTheme(const Theme& theme) {
  m_theme = theme;
  m_drawing.setTheme(theme);
  update();
}

void Legend::setContent(const LegendContent& content) {
  if (content == m_drawing.content() && !m_drawing.entries().empty()) return;
  m_drawing.setContent(content);
  setAccessibleName(content.scale.title.isEmpty() ? QStringLiteral("Legend") : content.scale.title);
  arrange();
  if (height() != heightForWidth(width())) emit heightChanged();
}

void Legend::setStatus(const QString& status) {
  if (status == m_status) return;
  m_status = status;
  update();
}

/// Room reserved for the status, so that its place does not change with the numbers.
int Legend::reserved() const {
  return fontMetrics().horizontalAdvance(QStringLiteral("simplified layout  ·  100 %")) + 2 * kLegendPad;
}

int Legend::heightForWidth(int width) const { return m_drawing.heightFor(width, reserved()); }

void Legend::arrange() {
  m_drawing.setFont(font());
  m_drawing.arrange(size(), reserved(), m_filter);
  setAccessibleDescription(entryTexts().join(QStringLiteral(", ")) +
                           QStringLiteral(". Left and right select an entry, space shows only its layers or values"));
  update();
}

QRect Legend::entryRect(LayerSplit split) const {
  for (const auto& entry : m_drawing.entries())
    if (entry.split == split) return entry.rect;
  return {};
}

QRect Legend::entryRect(Tint tint) const {
  for (const auto& entry : m_drawing.entries())
    if (entry.tint == tint) return entry.rect;
  return {};
}

QStringList Legend::entryTexts() const {
  QStringList texts;
  for (const auto& entry : m_drawing.entries())
    if (!entry.text.isEmpty()) texts << entry.text;
  return texts;
}

bool Legend::event(QEvent* event) {
  if (event->type() == QEvent::FocusIn) {
    const auto reason = static_cast<QFocusEvent*>(event)->reason();
    m_showsFocus = reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason;
    moveFocus(0);
  } else if (event->type() == QEvent::FocusOut) {
    m_showsFocus = false;
    update();
  }
  if (event->type() == QEvent::Resize || event->type() == QEvent::FontChange) {
    arrange();
    if (height() != heightForWidth(width())) emit heightChanged();
  }
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    for (const auto& entry : m_drawing.entries())
      if (!entry.tooltip.isEmpty() && entry.rect.contains(help->pos())) {
        QToolTip::showText(help->globalPos(), entry.tooltip, this, entry.rect);
        return true;
      }
    const QRect status = statusRoom();
    if (status.contains(help->pos()))
      QToolTip::showText(help->globalPos(), m_status, this, status);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

/// The status, after the entries of the first row.
QRect Legend::statusRoom() const {
  const int row = m_drawing.heightFor(1 << 20) - 2;
  return {m_drawing.firstRowEnd() + kLegendPad, 0, width() - m_drawing.firstRowEnd() - 2 * kLegendPad, row};
}

void Legend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  m_drawing.paint(painter, m_filter, m_showsFocus ? m_focus : -1);
  const QRect room = statusRoom();
  if (room.width() < fontMetrics().horizontalAdvance(QStringLiteral("100 %"))) return;  // not even room for the zoom
  painter.setPen(m_theme.textQuiet);
  painter.drawText(room, Qt::AlignVCenter | Qt::AlignRight,
                   fontMetrics().elidedText(m_status, Qt::ElideRight, room.width()));
}

void Legend::toggle(const LegendDrawing::Entry& entry) {
  if (entry.split) m_filter.splits ^= 1u << static_cast<int>(*entry.split);
  if (entry.tint) m_filter.tints ^= 1u << static_cast<int>(*entry.tint);
  arrange();
  emit filterChanged(m_filter);
}

void Legend::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  for (const auto& entry : m_drawing.entries())
    if (entry.isChoice() && entry.rect.contains(event->pos())) return toggle(LegendDrawing::Entry(entry));
}

/// Moves to the next selectable entry. 0: this one, if it is selectable.
void Legend::moveFocus(int by) {
  const auto& entries = m_drawing.entries();
  const int count = static_cast<int>(entries.size());
  for (int tried = 0; tried < count; ++tried) {
    m_focus = ((m_focus + by) % count + count) % count;
    if (entries[static_cast<std::size_t>(m_focus)].isChoice()) break;
    if (by == 0) by = 1;
  }
  update();
}

void Legend::keyPressEvent(QKeyEvent* event) {
  const auto& entries = m_drawing.entries();
  if (entries.empty()) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left: return moveFocus(-1);
    case Qt::Key_Right: return moveFocus(+1);
    case Qt::Key_Space:
    case Qt::Key_Return:
    case Qt::Key_Enter: {
      moveFocus(0);
      const LegendDrawing::Entry entry = entries[static_cast<std::size_t>(m_focus)];
      return entry.isChoice() ? toggle(entry) : void();
    }
    default: return QWidget::keyPressEvent(event);
  }
}

}  // namespace cleave::views
