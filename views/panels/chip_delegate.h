#pragma once
/// Draws placements in tables and trees: a chip ("S2") in the placement's colour and pattern, or a bar of the
/// placements inside a module. Models offer them under `kPlacementRole` (MaybePlacement) and `kTintCountsRole`
/// (TintCounts).
#include <QStyledItemDelegate>
#include <array>

#include "canvas/theme.h"

namespace cleave::views {

using TintCounts = std::array<int, kTintCount>;
inline constexpr int kPlacementRole = Qt::UserRole + 100;
inline constexpr int kTintCountsRole = Qt::UserRole + 101;
inline constexpr int kSortRole = Qt::UserRole + 102;    ///< what a column sorts by, where that is not its text
inline constexpr int kTargetRole = Qt::UserRole + 103;  ///< what a row stands for, as a link ("node:12")

class ChipDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  /// Names stand in the first column and are shortened at the front, where equal ones are alike.
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

/// A chip centred vertically in `rect`, at its left; answers its width.
int paintChip(QPainter& painter, const QRect& rect, const MaybePlacement& placement, const Theme& theme);
/// A bar that shows how many of a module's values lie how.
void paintTintBar(QPainter& painter, const QRect& rect, const TintCounts& counts, const Theme& theme);

}  // namespace cleave::views

Q_DECLARE_METATYPE(cleave::views::MaybePlacement)
Q_DECLARE_METATYPE(cleave::views::TintCounts)
