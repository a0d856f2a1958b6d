#pragma once
/// The middle of the window: the breadcrumb of the focused module above the canvas, connected to the session.
#include <QWidget>

#include "views/graph/model/heat_field.h"
#include "views/session/session.h"

class QActionGroup;
class QIODevice;
class QLabel;
class QMenu;

namespace cleave::views {

class GraphView;

class GraphArea : public QWidget {
  Q_OBJECT
 public:
  explicit GraphArea(Session& session, QWidget* parent = nullptr);
  /// Unfolds a module ("model.layers.0") and shows it. Negative if no module has that name.
  Result<void> expand(const QString& scopePath);
  struct Picture {
    QByteArray bytes;
    QString note;  ///< message about it ("drawn at 40 %"); usually empty
  };
  /// `kind`: "svg", "pdf" or "png"; of any size, with the legend.
  Result<Picture> exportPicture(const QString& kind);
  /// The amount that the canvas's colours show. Missing amounts are computed.
  void setColorBy(ColorBy what);
  ColorBy colorBy() const { return m_colorBy; }
  /// The state of the view that a session saves.
  SavedView savedView() const;
  void restore(const SavedView& view);
  /// Fit, zoom, fold, colours: for the View menu.
  void addActions(QMenu& menu);
  /// No layout is running.
  bool isSettled() const;
  GraphView& view() { return *m_view; }

 signals:
  void decisionWanted();  ///< an operator was double-clicked, or Enter pressed on it

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void followSession();
  void followView();
  void showModel();
  void showSplits(const std::vector<NodeId>& changed);
  void showStep();
  void reveal();
  void byUser(const std::function<void()>& change);
  void showContextMenu(const QPoint& position, NodeId node, ScopeId scope);
  void showFocus();
  void showPlan();
  void showHeat();
  void showErrors();
  void showChanges();
  void addColorActions(QMenu& menu);
  Result<QString> drawPicture(const QString& kind, QIODevice& out);
  void updateBreadcrumb();
  Session& m_session;
  QLabel* m_breadcrumb;
  GraphView* m_view;
  std::shared_ptr<const StepState> m_shown;
  ColorBy m_colorBy = ColorBy::Axis;
  QActionGroup* m_colors;
  bool m_isOwnChange = false;
};

}  // namespace cleave::views
