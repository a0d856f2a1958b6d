#pragma once
/// The page of saved runs: a table, details of one selected run, or the differences between two.
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

/// Columns: Ended, Model, Plan, Verdict, Loss, Step. One row per run, newest first.
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
  /// Selects the run of this number, counted from 1 (the newest). False: no such run.
  bool showRun(int number);
  bool compare(int number, int other);
  /// The text about the selected runs; for tests.
  QString text() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  std::vector<std::shared_ptr<const KeptRun>> chosen() const;  ///< at most two
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
  QBoxLayout* m_beside;  ///< layout of text and losses
};

}  // namespace cleave::views
