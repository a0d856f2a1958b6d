#pragma once
/// Who gets a key that a window has as a shortcut and its focused widget wants too.
///
/// Text fields keep what writes and edits, lists and fields keep Home and End; everything else is the window's: Qt
/// would give a text field Ctrl+E (end of line) and take Home from every table. A shortcut whose action is disabled
/// does nothing: Qt would give Alt+Left to the list in focus, which would move.
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
