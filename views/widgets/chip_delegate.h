#pragma once
/// Draws placements in tables and trees: a chip ("S2") in the placement's colour and pattern, or the bar of a module as
/// the canvas draws it. Models offer them under `kPlacementRole` (MaybePlacement) and `kSplitTallyRole` (SplitTally).
#include <QStyledItemDelegate>

#include "views/graph/model/split_counts.h"

namespace cleave::views {

inline constexpr int kPlacementRole = Qt::UserRole + 100;
inline constexpr int kSplitTallyRole = Qt::UserRole + 101;
inline constexpr int kSortRole = Qt::UserRole + 102;  ///< what a column sorts by, where that is not its text
inline constexpr int kRanksRole =
    Qt::UserRole + 104;  ///< beside kPlacementRole: copies on so many ranks are replicated

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
int paintChip(QPainter& painter, const QRect& rect, const MaybePlacement& placement, int ranks, const Theme& theme);

}  // namespace cleave::views

Q_DECLARE_METATYPE(cleave::views::MaybePlacement)
Q_DECLARE_METATYPE(cleave::views::SplitTally)
