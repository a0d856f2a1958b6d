#pragma once
/// The whole search in one strip: depth as a curve, conflicts as crosses, backtracks as drops, solutions as diamonds,
/// the current step as a line. Dragging scrubs, the wheel zooms at the pointer, and a double click shows everything
/// again. Keyboard: arrows step, Page Up and Down move by a tenth, plus and minus zoom at the step, 0 shows everything.
///
/// The reads worker computes the buckets, again for each new range, width or trace.
#include <QPixmap>
#include <QTimer>
#include <vector>

#include "views/session/plans.h"
#include "views/widgets/plot_widget.h"

namespace cleave::views {

class SearchTimeline : public PlotWidget {
  Q_OBJECT
 public:
  SearchTimeline(Debugger& debugger, const Plans& plans, QWidget* parent = nullptr);
  QSize sizeHint() const override { return {600, 92}; }
  QSize minimumSizeHint() const override { return {160, 56}; }
  StepId stepAt(int x) const;
  int xOf(StepId step) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void paintPlot(QPainter& painter) override;
  QString emptyText() const override;
  PlotTip tipAt(const QPointF& position) const override;

 private:
  void traceChanged();
  void requestBuckets();
  void showRange(StepId first, StepId last);
  void showAll();
  void showStep();
  void zoomAbout(StepId pivot, double factor);
  QRect plotRect() const;
  QRect scaleRect() const;
  PlotFrame frame() const;  ///< steps across; shares of the height upwards
  void repaintSearch();
  void paintSearch();
  void paintStep(QPainter& painter) const;
  void paintDepth(QPainter& painter, const QRect& plot) const;
  void paintMarks(QPainter& painter, const QRect& plot) const;

  Debugger& m_debugger;
  const Plans& m_plans;
  std::vector<solve::TimelineBucket> m_buckets;
  StepId m_first = 0, m_last = 1;              ///< range shown, in events
  StepId m_bucketFirst = 0, m_bucketLast = 0;  ///< range the buckets are for
  bool m_showsAll = true;
  QPixmap m_picture;  ///< everything except the step; painted again at another size
  QTimer m_requestTimer;
};

}  // namespace cleave::views
