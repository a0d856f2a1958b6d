#pragma once
/// The events of a trace as a list of any length. The model reads blocks as rows scroll into view and the view stores
/// nothing per row, so that millions of events cost nothing until they are shown.
#include <QAbstractScrollArea>
#include <QAbstractTableModel>
#include <QCache>
#include <memory>

#include "solve/trace/cursor.h"

namespace cleave::views {

/// Columns: Step (the number of events applied up to and with this one), Event, Node, What.
class EventLogModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Step, Kind, NodeColumn, What, ColumnCount };
  explicit EventLogModel(QObject* parent = nullptr);
  void setTrace(std::shared_ptr<const solve::Trace> trace);
  /// Adds the events recorded since the last call.
  void grow();
  const std::shared_ptr<const solve::Trace>& trace() const { return m_trace; }
  solve::Event eventAt(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  using Page = std::vector<solve::Event>;
  std::shared_ptr<const solve::Trace> m_trace;
  int m_rows = 0;
  mutable QCache<int, Page> m_pages;
};

class EventLogView : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit EventLogView(EventLogModel& model, QWidget* parent = nullptr);
  /// Marks the row of the event that led to `step` and keeps it in view.
  void setStep(solve::StepId step);
  /// Marks and scrolls to the event that assigned the externally focused node. The next step removes the mark.
  void mark(solve::StepId event);

 signals:
  void stepChosen(solve::StepId step);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  int rowHeight() const;
  int visibleRows() const;
  void updateScrollBar();
  void choose(qint64 row);
  EventLogModel& m_model;
  void scrollIntoView(int row);
  int m_current = -1, m_marked = -1;
};

}  // namespace cleave::views
