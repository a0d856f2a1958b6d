#include "views/widgets/key_priority.h"

#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QAction>
#include <QApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTextEdit>
#include <algorithm>

namespace cleave::views {

namespace {
template <class... Classes>
bool isOneOf(const QWidget& widget) {
  return (qobject_cast<const Classes*>(&widget) || ...);
}

/// Also in a floating dock, where the window's shortcuts work too.
bool isWithin(const QWidget* widget, const QWidget& window) {
  while (widget && widget != &window) widget = widget->parentWidget();
  return widget;
}

bool isTextField(const QWidget& widget) {
  return isOneOf<QLineEdit, QAbstractSpinBox, QPlainTextEdit, QTextEdit>(widget);
}

bool usesHomeAndEnd(const QWidget& widget) {
  return isTextField(widget) || isOneOf<QAbstractItemView, QAbstractSlider>(widget);
}

/// Keys that users expect in a text field on every platform.
bool isEditing(const QKeyEvent& key) {
  static constexpr QKeySequence::StandardKey kKeys[] = {QKeySequence::Undo,
                                                        QKeySequence::Redo,
                                                        QKeySequence::Cut,
                                                        QKeySequence::Copy,
                                                        QKeySequence::Paste,
                                                        QKeySequence::SelectAll,
                                                        QKeySequence::MoveToNextWord,
                                                        QKeySequence::SelectNextWord,
                                                        QKeySequence::MoveToPreviousWord,
                                                        QKeySequence::SelectPreviousWord,
                                                        QKeySequence::DeleteStartOfWord,
                                                        QKeySequence::DeleteEndOfWord};
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](auto standard) { return key.matches(standard); });
}

bool isWithoutModifiers(const QKeyEvent& key) {
  return !(key.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
}

/// A disabled menu action: the list's own reaction to Alt+Left is not what the user asked for.
bool isOfDisabledAction(const QWidget& window, const QKeyEvent& key) {
  const QKeySequence pressed(key.keyCombination());
  const auto actions = window.findChildren<QAction*>();
  return std::any_of(actions.begin(), actions.end(), [&](const QAction* action) {
    return !action->isEnabled() && action->shortcuts().contains(pressed);
  });
}
}  // namespace

KeyPriority::KeyPriority(QWidget& window) : QObject(&window), m_window(window) { qApp->installEventFilter(this); }

bool KeyPriority::takesKey(QObject* watched, const QKeyEvent& key) const {
  const auto* widget = qobject_cast<const QWidget*>(watched);
  if (!widget || isWithoutModifiers(key) || !isWithin(widget, m_window)) return false;
  return !(isTextField(*widget) && isEditing(key)) && isOfDisabledAction(m_window, key);
}

bool KeyPriority::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress) return takesKey(watched, static_cast<const QKeyEvent&>(*event));
  if (event->type() != QEvent::ShortcutOverride) return false;
  const auto* widget = qobject_cast<const QWidget*>(watched);
  if (!widget || !isWithin(widget, m_window)) return false;
  auto& key = static_cast<QKeyEvent&>(*event);
  const bool isBare = isWithoutModifiers(key);
  if (isBare && (key.key() == Qt::Key_Home || key.key() == Qt::Key_End) && usesHomeAndEnd(*widget)) {
    key.accept();
    return true;
  }
  if (isBare || !isTextField(*widget) || isEditing(key)) return false;
  key.ignore();  // the window's shortcut gets the key if there is one, else the field does
  return true;
}

}  // namespace cleave::views
