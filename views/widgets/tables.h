#pragma once
/// The tables of the window: one look, sortable, with a filter box, and copied as tab-separated text.
#include <QHash>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QWidget>

#include "views/base/target.h"

class QLineEdit;
class QLabel;

namespace cleave::views {

/// Accepts a row when each word of the filter occurs in some column (or in the row's tool tips).
class WordFilterModel : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit WordFilterModel(QObject* parent = nullptr);
  void setWords(const QString& text);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  QStringList m_words;
};

/// A table with a filter box above, and a sentence while it is empty.
class TablePanel : public QWidget {
  Q_OBJECT
 public:
  TablePanel(QAbstractItemModel* model, const QString& filterHint, const QString& emptyText, QWidget* parent = nullptr);
  QTableView* table() const { return m_table; }
  void setColumnWidths(std::initializer_list<std::pair<int, int>> widths);  ///< column, pixels
  WordFilterModel* proxy() const { return m_proxy; }
  void setEmptyText(const QString& text);
  /// Selects and shows the row of `target` (kTargetRole) without emitting a signal. Clears the selection if there is no
  /// such row.
  void showTarget(const std::optional<Target>& target);

 signals:
  /// The user chose a row.
  void targetChosen(const cleave::views::Target& target);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void filter(const QString& words);
  void updateRows();
  int rowOf(const Target& target);
  void copySelection();
  QLineEdit* m_filter;
  QTableView* m_table;
  QLabel* m_empty;
  WordFilterModel* m_proxy;
  std::optional<Target> m_target;  ///< the selected target, also while its row is filtered out
  QHash<Target, int> m_rows;       ///< of the source model by target; empty until asked for
  bool m_isShowing = false;
};

/// The look of all tables of rows: read only, without a grid, Tab leaves it.
void styleTable(QTableView& table);
/// "Filter layers", with a button that clears it.
QLineEdit* makeFilterBox(const QString& hint);
/// A quiet, centred, word-wrapped sentence for an empty panel.
QLabel* makeEmptyLabel(const QString& text, QWidget* parent = nullptr);

}  // namespace cleave::views
