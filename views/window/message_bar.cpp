#include "views/window/message_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <algorithm>

#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr int kStayMs = 10'000;
constexpr int kBandWidth = 4;

QColor bandColor(const Theme& theme, Severity severity) {
  switch (severity) {
    case Severity::Info: return theme.accent;
    case Severity::Good: return theme.good;
    case Severity::Warning: return theme.warning;
    case Severity::Failure: return theme.conflict;
  }
  return theme.accent;
}
}  // namespace

MessageBar::MessageBar(QWidget* parent) : QFrame(parent), m_text(new QLabel) {
  m_text->setWordWrap(true);
  m_text->setTextFormat(Qt::PlainText);
  m_text->setMinimumWidth(1);  // a path that cannot be broken does not push the docks aside
  m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* close = new QToolButton;
  close->setText(QStringLiteral("✕"));
  close->setAutoRaise(true);
  close->setToolTip(tr("Close this message"));
  close->setAccessibleName(close->toolTip());
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(kBandWidth + 10, 5, 6, 5);
  layout->addWidget(m_text, 1);
  layout->addWidget(close, 0, Qt::AlignTop);
  connect(close, &QToolButton::clicked, this, &MessageBar::leave);
  m_timer.setSingleShot(true);
  m_timer.setInterval(kStayMs);
  connect(&m_timer, &QTimer::timeout, this, &MessageBar::leave);
  hide();
}

QString MessageBar::text() const { return current() ? current()->text : QString(); }

/// Closed by the user or by time: what it stood before is seen again.
void MessageBar::leave() {
  current().reset();
  refresh();
}

void MessageBar::withdraw(const std::vector<About>& gone) {
  for (auto* said : {&m_ofPlan, &m_passing})
    if (*said && std::find(gone.begin(), gone.end(), (*said)->about) != gone.end()) said->reset();
  refresh();
}

void MessageBar::show(const QString& text, Severity severity, About about) {
  auto& said = about == About::Plan ? m_ofPlan : m_passing;
  said.reset();
  if (!text.isEmpty()) said = Said{text, severity, about};
  m_timer.stop();
  refresh();
}

void MessageBar::refresh() {
  const bool isPassing = current() && (current()->severity == Severity::Info || current()->severity == Severity::Good);
  if (!isPassing)
    m_timer.stop();
  else if (!m_timer.isActive())
    m_timer.start();
  if (text() == m_text->text() && isHidden() == text().isEmpty()) return update();
  emit aboutToPlace();
  m_text->setText(text());
  m_text->setToolTip(text());
  setVisible(!text().isEmpty());
  emit placed();
  update();
}

void MessageBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme theme = Theme::of(palette());
  const QColor band = bandColor(theme, current() ? current()->severity : Severity::Info);
  painter.fillRect(rect(), blend(theme.groundRaised, band, 0.12));
  painter.fillRect(QRect(0, 0, kBandWidth, height()), band);
  painter.fillRect(QRect(0, 0, width(), 1), theme.border);
}

}  // namespace cleave::views
