#pragma once
/// Decides who gets a key that is a window shortcut and is also used by the focused widget.
///
/// Text fields keep keys that write and edit; lists and fields keep Home and End; the window gets all others. Qt would
/// give Ctrl+E (end of line) to a text field and take Home from every table. A shortcut with a disabled action does
/// nothing, where Qt would give Alt+Left to the focused list, which would move.
#include <QObject>

class QKeyEvent;
class QWidget;

namespace cleave::views {

class KeyPriority : public QObject {
  Q_OBJECT
 public:
  /// Works, and lives, as long as the window.
  explicit KeyPriority(QWidget& window);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool takesKey(QObject* watched, const QKeyEvent& key) const;
  QWidget& m_window;
};

}  // namespace cleave::views
