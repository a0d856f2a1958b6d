#include "views/widgets/flow_layout.h"

#include <algorithm>

namespace cleave::views {

FlowLayout::FlowLayout(int margin, int spacing) {
  setContentsMargins(margin, margin, margin, margin);
  setSpacing(spacing);
}

void FlowLayout::addItem(QLayoutItem* item) { m_items.emplace_back(item); }

QLayoutItem* FlowLayout::itemAt(int index) const {
  return index >= 0 && index < count() ? m_items[static_cast<std::size_t>(index)].get() : nullptr;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  if (index < 0 || index >= count()) return nullptr;
  QLayoutItem* item = m_items[static_cast<std::size_t>(index)].release();
  m_items.erase(m_items.begin() + index);
  return item;
}

void FlowLayout::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  arrange(rect, true);
}

QSize FlowLayout::sizeHint() const {
  QSize size;
  for (const auto& item : m_items) {
    if (item->isEmpty()) continue;
    const QSize hint = item->sizeHint();
    size = {size.width() + hint.width() + (size.isEmpty() ? 0 : spacing()), std::max(size.height(), hint.height())};
  }
  return size.grownBy(contentsMargins());
}

QSize FlowLayout::minimumSize() const {
  QSize size;
  for (const auto& item : m_items)
    if (!item->isEmpty()) size = size.expandedTo(item->minimumSize());
  return size.grownBy(contentsMargins());
}

int FlowLayout::arrange(const QRect& rect, bool isForReal) const {
  const QMargins margins = contentsMargins();
  const QRect room = rect.marginsRemoved(margins);
  int x = room.left(), y = room.top(), rowHeight = 0;
  for (const auto& item : m_items) {
    if (item->isEmpty()) continue;
    const QSize hint = item->sizeHint();
    const int width = std::min(hint.width(), std::max(item->minimumSize().width(), room.width()));
    if (x > room.left() && x + width > room.right() + 1) {
      x = room.left();
      y += rowHeight + spacing();
      rowHeight = 0;
    }
    if (isForReal) item->setGeometry(QRect(x, y, width, hint.height()));
    x += width + spacing();
    rowHeight = std::max(rowHeight, hint.height());
  }
  return y + rowHeight - rect.top() + margins.bottom();
}

}  // namespace cleave::views
