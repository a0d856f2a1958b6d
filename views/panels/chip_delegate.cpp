#include "panels/chip_delegate.h"

#include <QApplication>
#include <QPainter>
#include <numeric>

namespace cleave::views {

namespace {
constexpr int kChipHeight = 16;
constexpr int kBarHeight = 8;

void fillTint(QPainter& painter, const QRectF& rect, Tint tint, const Theme& theme, qreal radius) {
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.color(tint));
  painter.drawRoundedRect(rect, radius, radius);
  if (const QBrush pattern = theme.pattern(tint); pattern.style() != Qt::NoBrush) {
    painter.setBrush(pattern);
    painter.drawRoundedRect(rect, radius, radius);
  }
}
}  // namespace

int paintChip(QPainter& painter, const QRect& rect, const MaybePlacement& placement, const Theme& theme) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  QFont font = painter.font();
  font.setWeight(QFont::DemiBold);
  font.setPointSizeF(font.pointSizeF() * 0.88);
  painter.setFont(font);
  const QString text = chipText(placement);
  const int width = std::max(24, painter.fontMetrics().horizontalAdvance(text) + 10);
  const QRectF chip(rect.left(), rect.center().y() - kChipHeight / 2.0 + 0.5, width, kChipHeight);
  const Tint tint = tintOf(placement);
  if (tint == Tint::Unassigned) {
    QPen pen(theme.textQuiet, 1, Qt::DashLine);
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(chip, 3, 3);
    painter.setPen(theme.textQuiet);
  } else {
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.color(tint));
    painter.drawRoundedRect(chip, 3, 3);
    painter.setPen(theme.textOn(theme.color(tint)));
  }
  painter.drawText(chip, Qt::AlignCenter, text);
  painter.restore();
  return width;
}

void paintTintBar(QPainter& painter, const QRect& rect, const TintCounts& counts, const Theme& theme) {
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  if (total == 0 || rect.width() < 4) return;
  painter.save();
  QRectF bar(rect.left(), rect.center().y() - kBarHeight / 2.0 + 0.5, rect.width(), kBarHeight);
  qreal at = bar.left();
  for (int i = 0; i < kTintCount; ++i) {
    if (counts[static_cast<std::size_t>(i)] == 0) continue;
    const qreal width = bar.width() * counts[static_cast<std::size_t>(i)] / total;
    const Tint tint = static_cast<Tint>(i);
    if (tint == Tint::Unassigned) {
      painter.setPen(QPen(theme.textQuiet, 1, Qt::DotLine));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(QRectF(at, bar.top(), width - 1, bar.height() - 1));
    } else {
      fillTint(painter, QRectF(at, bar.top(), width, bar.height()), tint, theme, 0);
    }
    at += width;
  }
  painter.restore();
}

void ChipDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QVariant placement = index.data(kPlacementRole);
  const QVariant counts = index.data(kTintCountsRole);
  if (!placement.isValid() && !counts.isValid()) return QStyledItemDelegate::paint(painter, option, index);
  QStyleOptionViewItem plain = option;
  initStyleOption(&plain, index);
  plain.text.clear();
  const QWidget* widget = option.widget;
  (widget ? widget->style() : QApplication::style())->drawControl(QStyle::CE_ItemViewItem, &plain, painter, widget);
  const Theme theme = Theme::of(option.palette);
  const QRect inner = option.rect.adjusted(6, 0, -6, 0);
  painter->save();
  painter->setFont(option.font);
  if (placement.isValid())
    paintChip(*painter, inner, placement.value<MaybePlacement>(), theme);
  else
    paintTintBar(*painter, inner, counts.value<TintCounts>(), theme);
  painter->restore();
}

void ChipDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  if (index.column() == 0) option->textElideMode = Qt::ElideLeft;
}

QSize ChipDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(std::max(size.height(), kChipHeight + 4));
  if (index.data(kPlacementRole).isValid()) size.setWidth(std::max(size.width(), 56));
  return size;
}

}  // namespace cleave::views
