#pragma once
/// Draws placements in tables and trees: a chip ("S2") in the placement's colour and pattern, or a module's bar as on
/// the canvas. Models provide them under `kPlacementRole` (MaybePlacement) and `kSplitTallyRole` (SplitTally).
#include <QStyledItemDelegate>

#include "views/graph/model/split_counts.h"

namespace cleave::views {

inline constexpr int kPlacementRole = Qt::UserRole + 100;
inline constexpr int kSplitTallyRole = Qt::UserRole + 101;
inline constexpr int kSortRole = Qt::UserRole + 102;  ///< sort key of a column, if it is not the text
inline constexpr int kRanksRole =
    Qt::UserRole + 104;  ///< with kPlacementRole: the number of copies that count as replicated

class ChipDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  /// Names are in the first column and are shortened at the front, because similar names differ at the end.
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

/// A vertically centred chip at the left of `rect`. Returns its width.
int paintChip(QPainter& painter, const QRect& rect, const MaybePlacement& placement, int ranks, const Theme& theme);

}  // namespace cleave::views

Q_DECLARE_METATYPE(cleave::views::MaybePlacement)
Q_DECLARE_METATYPE(cleave::views::SplitTally)
