#include "views/panels/link_text.h"

#include <QPainter>
#include <QScrollBar>

#include "views/panels/rich_text.h"
#include "views/session/selection.h"

namespace cleave::views {

LinkText::LinkText(Selection& selection, QWidget* parent) : QTextBrowser(parent) {
  setOpenLinks(false);
  setFrameShape(QFrame::NoFrame);
  QTextBrowser::document()->setDocumentMargin(8);
  connect(this, &QTextBrowser::anchorClicked, this, [this, &selection](const QUrl& url) {
    const auto target = parseLink(QUrl::fromPercentEncoding(url.toEncoded()));
    if (!target) return;
    if (const auto* question = std::get_if<WhyNotTarget>(&*target))
      emit asked(*question);
    else
      selection.follow(*target);
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
