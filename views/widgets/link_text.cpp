#include "views/widgets/link_text.h"

#include <QPainter>
#include <QScrollBar>

#include "views/base/rich_text.h"

namespace cleave::views {

LinkText::LinkText(QWidget* parent) : QTextBrowser(parent) {
  setOpenLinks(false);
  setFrameShape(QFrame::NoFrame);
  QTextBrowser::document()->setDocumentMargin(8);
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    if (const auto target = parseLink(QUrl::fromPercentEncoding(url.toEncoded()))) emit followed(*target);
  });
}

void LinkText::setEmptyText(const QString& text) { m_emptyText = text; }

void LinkText::showHtml(const QString& html, bool isSameSubject) {
  const QString shown = html.isEmpty() ? QString() : richTextStyle(palette()) + html;
  if (shown == m_shown) return;
  m_shown = shown;
  const int scroll = verticalScrollBar()->value();
  setHtml(shown);
  verticalScrollBar()->setValue(isSameSubject ? scroll : 0);
  viewport()->update();
}

void LinkText::paintEvent(QPaintEvent* event) {
  QTextBrowser::paintEvent(event);
  if (!m_shown.isEmpty() || m_emptyText.isEmpty()) return;
  QPainter painter(viewport());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(viewport()->rect().adjusted(16, 16, -16, -16), Qt::AlignCenter | Qt::TextWordWrap, m_emptyText);
}

}  // namespace cleave::views
