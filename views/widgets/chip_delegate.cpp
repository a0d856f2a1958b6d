#include "views/widgets/chip_delegate.h"

#include <QApplication>
#include <QPainter>

#include "views/base/fonts.h"
#include "views/base/text.h"
#include "views/graph/scene/split_bar.h"

namespace cleave::views {

namespace {
constexpr int kChipHeight = 16;
constexpr int kBarHeight = 8;

void paintBar(QPainter& painter, const QRect& rect, const SplitTally& tally, const Theme& theme) {
  if (rect.width() < 4) return;
  const QRectF bar(rect.left(), rect.center().y() - kBarHeight / 2.0 + 0.5, rect.width(), kBarHeight);
  paintSplitBar(painter, bar, tally, theme, 4);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(theme.borderStrong);
  painter.drawRect(bar);
}
}  // namespace

int paintChip(QPainter& painter, const QRect& rect, const MaybePlacement& placement, int ranks, const Theme& theme) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(smallFont(strongFont(painter.font())));
  const QString text = chipText(placement);
  const int width = std::max(24, painter.fontMetrics().horizontalAdvance(text) + 10);
  const QRectF chip(rect.left(), rect.center().y() - kChipHeight / 2.0 + 0.5, width, kChipHeight);
  const Tint tint = tintOf(placement, ranks);
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

void ChipDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QVariant placement = index.data(kPlacementRole);
  const QVariant counts = index.data(kSplitTallyRole);
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
    paintChip(*painter, inner, placement.value<MaybePlacement>(), index.data(kRanksRole).toInt(), theme);
  else
    paintBar(*painter, inner, counts.value<SplitTally>(), theme);
  painter->restore();
}

void ChipDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  if (index.column() == 0) option->textElideMode = elideModeOf(option->text);
}

QSize ChipDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  size.setHeight(std::max(size.height(), kChipHeight + 4));
  if (index.data(kPlacementRole).isValid()) size.setWidth(std::max(size.width(), 56));
  return size;
}

}  // namespace cleave::views
