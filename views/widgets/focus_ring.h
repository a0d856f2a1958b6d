#pragma once
/// Shows where the keyboard is, for who uses it: a ring around the widget with the focus, in the window and its
/// dialogs, from a key until the next click. The style draws a focus on some widgets, faintly or not at all on others,
/// and the style sheet takes the frames of lists away.
#include <QObject>
#include <QPointer>

class QWidget;

namespace cleave::views {

class FocusRing : public QObject {
  Q_OBJECT
 public:
  /// Works, and lives, as long as the window.
  explicit FocusRing(QWidget& window);
  /// The ring, a child of the window it is in; null while nothing was reached by the keyboard.
  QWidget* ring() const;

 signals:
  void tabbedTo(QWidget* widget);  ///< which may lie behind others: Tab knows nothing of docks under each other

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void follow(QWidget* widget);
  void place();
  QPointer<QWidget> m_ring;  ///< goes with the dialog it is in
  QPointer<QWidget> m_widget;
  bool m_isByKeys = false, m_isTabbing = false;
};

}  // namespace cleave::views
