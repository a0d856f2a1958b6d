#include "views/widgets/focus_ring.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMenuBar>
#include <QPainter>
#include <QWidget>

#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr int kWidth = 2;

class Ring : public QWidget {
 public:
  explicit Ring(QWidget* window) : QWidget(window) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    setObjectName(QStringLiteral("focus-ring"));
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setPen(QPen(Theme::of(palette()).accent, kWidth, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(QRectF(rect()).adjusted(kWidth / 2.0, kWidth / 2.0, -kWidth / 2.0, -kWidth / 2.0));
  }
};

bool isTab(const QEvent& event) {
  const int key = static_cast<const QKeyEvent&>(event).key();
  return key == Qt::Key_Tab || key == Qt::Key_Backtab;
}

/// The visible part of the widget, in its window's coordinates.
QRect visibleRect(const QWidget& widget) {
  QRect rect = widget.rect();
  const QWidget* at = &widget;
  for (; !at->isWindow() && at->parentWidget(); at = at->parentWidget()) {
    rect.translate(at->pos());
    rect &= at->parentWidget()->rect();
  }
  return rect;
}
}  // namespace

FocusRing::FocusRing(QWidget& window) : QObject(&window) { qApp->installEventFilter(this); }

QWidget* FocusRing::ring() const { return m_ring && m_ring->isVisible() ? m_ring.data() : nullptr; }

bool FocusRing::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::KeyPress:
      m_isByKeys = true;
      m_isTabbing = isTab(*event);
      break;
    case QEvent::KeyRelease: m_isTabbing = false; break;
    case QEvent::FocusIn:
      if (auto* widget = qobject_cast<QWidget*>(watched);
          widget && widget->window() != widget && !qobject_cast<QMenuBar*>(widget)) {  // it marks its own entry
        if (m_isTabbing) emit tabbedTo(widget);
        follow(m_isByKeys ? widget : nullptr);
      }
      break;
    case QEvent::FocusOut:
      if (watched == m_widget) follow(nullptr);
      break;
    case QEvent::MouseButtonPress:
      m_isByKeys = m_isTabbing = false;
      if (m_widget) follow(nullptr);
      break;
    case QEvent::Move:
    case QEvent::Resize:
    case QEvent::Show:
    case QEvent::Hide:
      if (auto* widget = qobject_cast<QWidget*>(watched);
          m_widget && widget && widget != m_ring && (widget == m_widget || widget->isAncestorOf(m_widget)))
        QMetaObject::invokeMethod(this, &FocusRing::place, Qt::QueuedConnection);  // after all layouts have moved
      break;
    default: break;
  }
  return false;
}

void FocusRing::follow(QWidget* widget) {
  m_widget = widget;
  place();
}

void FocusRing::place() {
  const QRect rect = m_widget && m_widget->isVisible() ? visibleRect(*m_widget) : QRect();
  if (rect.isEmpty()) {
    if (m_ring) m_ring->hide();
    return;
  }
  if (!m_ring) m_ring = new Ring(m_widget->window());
  if (m_ring->parentWidget() != m_widget->window()) m_ring->setParent(m_widget->window());
  m_ring->setGeometry(rect);
  m_ring->show();
  m_ring->raise();
}

}  // namespace cleave::views
