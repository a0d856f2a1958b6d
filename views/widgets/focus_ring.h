#pragma once
/// Shows the keyboard focus: a ring around the focused widget, in the window and its dialogs, from a key press until
/// the next click. The style draws the focus weakly or not at all on some widgets, and the style sheet removes the
/// frames of lists.
#include <QObject>
#include <QPointer>

class QWidget;

namespace cleave::views {

class FocusRing : public QObject {
  Q_OBJECT
 public:
  /// Works, and lives, as long as the window.
  explicit FocusRing(QWidget& window);
  /// The ring, a child of its window. Null before the keyboard is used.
  QWidget* ring() const;

 signals:
  void tabbedTo(QWidget* widget);  ///< the widget may be in a hidden tab, because Tab ignores how docks are stacked

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void follow(QWidget* widget);
  void place();
  QPointer<QWidget> m_ring;  ///< deleted together with its dialog
  QPointer<QWidget> m_widget;
  bool m_isByKeys = false, m_isTabbing = false;
};

}  // namespace cleave::views
