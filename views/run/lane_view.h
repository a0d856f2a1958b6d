#pragma once
/// The timeline of a recorded step, with one lane per rank: compute, collectives, and waiting for other ranks. The
/// wheel zooms at the pointer, and dragging pans. Arrow keys move between stretches and ranks, + and - zoom, 0 shows
/// all.
#include <QAbstractScrollArea>
#include <memory>
#include <optional>

#include "pipeline/report/timeline.h"
#include "views/widgets/plot_frame.h"
#include "views/widgets/plot_legend.h"

namespace cleave::views {

/// The kinds of stretches that the picture distinguishes.
enum class LaneKind : std::uint8_t { Forward, Backward, Optimizer, Collective, Waiting };
inline constexpr int kLaneKinds = 5;
LaneKind laneKindOf(const pipeline::Stretch& stretch);

class LaneView : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit LaneView(QWidget* parent = nullptr);
  /// Keeps both. An empty timeline clears the picture.
  void setTimeline(std::shared_ptr<const pipeline::Timeline> timeline, std::shared_ptr<const plan::Plan> plan);
  /// Marks all stretches of this node of the ATen graph.
  void setFocusNode(graph::NodeId node);

  /// A stretch: the rank, and its index in the rank's lane.
  struct Place {
    int rank = 0;
    std::size_t stretch = 0;
    bool operator==(const Place&) const = default;
  };
  std::optional<Place> placeAt(const QPoint& position) const;  ///< in the viewport
  QRect rectOf(const Place& place) const;                      ///< at least one pixel wide, in the viewport
  const std::optional<Place>& chosen() const { return m_chosen; }
  void choose(const Place& place);
  /// "linear in model.layers.0.mlp.up_proj, rank 1: 12.3 µs from 1.25 ms on; predicted 3.1 µs".
  QString textOf(const Place& place) const;
  void zoomBy(double factor, double atShare = 0.5);  ///< `atShare`: fixed point, as a fraction of the visible width
  void showAll();
  /// Visible nanoseconds; for tests.
  double visibleFrom() const { return m_shown.low; }
  double visibleTo() const { return m_shown.high; }
  QSize sizeHint() const override { return {600, 260}; }

 signals:
  void nodeChosen(cleave::graph::NodeId node);     ///< of the ATen graph; a click or the keyboard
  void nodeActivated(cleave::graph::NodeId node);  ///< a double click or Enter
  void chosenChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  using Lane = std::vector<pipeline::Stretch>;
  int ranks() const { return m_timeline ? static_cast<int>(m_timeline->lanes.size()) : 0; }
  const Lane& lane(int rank) const { return m_timeline->lanes[static_cast<std::size_t>(rank)]; }
  const pipeline::Stretch& at(const Place& place) const { return lane(place.rank)[place.stretch]; }
  int gutter() const { return m_gutter; }  ///< width of the column with rank names
  void measureGutter();
  int axisHeight() const;
  int laneHeight() const;
  double xOf(double nanoseconds) const;
  double timeAt(double x) const;
  PlotFrame frame() const;                  ///< of the lanes, in the viewport and in nanoseconds
  PlotRange whole() const;                  ///< the whole step
  void setVisible(const PlotRange& range);  ///< as far as possible
  void updateScrollBars();
  void scrollTo(int position);  ///< of the horizontal bar
  void walk(int ranks, int stretches);
  void reveal(const Place& place);
  void emitChosen(bool isActivated);
  void paintAxis(QPainter& painter) const;
  void paintLane(QPainter& painter, int rank) const;
  void paintStretch(QPainter& painter, const QRectF& rect, const pipeline::Stretch& stretch) const;
  std::shared_ptr<const pipeline::Timeline> m_timeline;
  std::shared_ptr<const plan::Plan> m_plan;
  std::vector<solve::StepCost> m_costs;  ///< by node of the ATen graph
  graph::NodeId m_focus;
  std::optional<Place> m_chosen;
  PlotRange m_shown;  ///< in nanoseconds
  int m_gutter = 0;
  std::optional<QPoint> m_pressed;
  double m_pressedFrom = 0;
  bool m_isDragged = false;
};

/// The legend of the colours and patterns that occur.
class LaneLegend : public QWidget {
  Q_OBJECT
 public:
  explicit LaneLegend(QWidget* parent = nullptr);
  void setTimeline(const pipeline::Timeline* timeline);
  QSize sizeHint() const override { return {300, heightForWidth(std::max(300, width()))}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  PlotLegend legend() const;
  std::vector<LaneKind> m_kinds;
};

}  // namespace cleave::views
