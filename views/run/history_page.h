#pragma once
/// The page of runs that were kept: a table of them; of one what is known of it, of two what differs.
#include <QAbstractTableModel>
#include <QWidget>

#include "views/session/run_history.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QTableView;

namespace cleave::views {

class LineChart;
class LinkText;

/// Columns: Ended, Model, Plan, Verdict, Loss, Step; a row each, newest first.
class HistoryModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Ended, Model, Plan, Verdict, Loss, Step, ColumnCount };
  explicit HistoryModel(const RunHistory& history, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const RunHistory& m_history;
};

class HistoryPage : public QWidget {
  Q_OBJECT
 public:
  explicit HistoryPage(RunHistory& history, QWidget* parent = nullptr);
  /// The run of this number, from 1 (the newest) on; false: there is none.
  bool showRun(int number);
  bool compare(int number, int other);
  /// What is said of those that are chosen; for tests.
  QString text() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  std::vector<std::shared_ptr<const KeptRun>> chosen() const;  ///< two at most
  void choose(std::initializer_list<int> numbers);
  void refresh();
  void showChosen();
  void forgetChosen();
  RunHistory& m_history;
  HistoryModel* m_model;
  QTableView* m_table;
  QLabel* m_empty;
  QLabel* m_trouble;
  QPushButton* m_forget;
  LineChart* m_losses;
  LinkText* m_text;
  QWidget* m_details;
  QBoxLayout* m_beside;  ///< what is in there
};

}  // namespace cleave::views
