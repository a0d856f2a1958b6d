#include "views/window/message_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QTextLayout>
#include <QToolButton>
#include <algorithm>

#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr int kStayMs = 10'000;
constexpr int kBandWidth = 4;
constexpr int kMostLines = 3, kLowWindow = 700;  // a lower window has room for one line

/// The longest beginning of the text that fits into this number of lines.
QString inLines(const QString& text, const QFont& font, int width, int most) {
  QString flat = text;
  QTextLayout layout(flat.replace(QLatin1Char('\n'), QChar::LineSeparator), font);
  layout.beginLayout();
  int lines = 0;
  QString shown = text;
  for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
    line.setLineWidth(width);
    if (++lines < most) continue;
    const QString rest = text.mid(line.textStart());
    if (line.textStart() + line.textLength() < text.size())
      shown = text.left(line.textStart()) + QFontMetrics(font).elidedText(rest.simplified(), Qt::ElideRight, width);
    break;
  }
  layout.endLayout();
  return shown;
}

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
  m_text->setMinimumWidth(1);  // an unbreakable path must not push the docks aside
  m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* close = new QToolButton;
  close->setText(QStringLiteral("✕"));
  close->setAutoRaise(true);
  close->setToolTip(QStringLiteral("Close this message"));
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

/// The message was closed by the user or by time: show the plan's message again.
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
  if (!text.isEmpty()) said = NamedStyles{text, severity, about};
  m_timer.stop();
  refresh();
}

void MessageBar::refresh() {
  const bool isPassing = current() && (current()->severity == Severity::Info || current()->severity == Severity::Good);
  if (!isPassing)
    m_timer.stop();
  else if (!m_timer.isActive())
    m_timer.start();
  if (text() == m_text->toolTip() && isHidden() == text().isEmpty()) return update();
  emit aboutToPlace();
  m_text->setToolTip(text());
  fitText();
  setVisible(!text().isEmpty());
  emit placed();
  update();
}

void MessageBar::fitText() {
  const int room = width() - layout()->contentsMargins().left() - layout()->contentsMargins().right() -
                   layout()->spacing() - layout()->itemAt(1)->sizeHint().width();
  const QString shown =
      inLines(text(), m_text->font(), std::max(1, room), window()->height() < kLowWindow ? 1 : kMostLines);
  if (shown != m_text->text()) m_text->setText(shown);
}

void MessageBar::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fitText();
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
