#pragma once
/// Rich text with the window's fonts and colours that can be selected, copied, and walked by keyboard (Tab from link to
/// link, Enter follows). A link moves the focus; one that is no place is announced instead.
#include <QTextBrowser>

#include "views/base/target.h"

namespace cleave::views {

class Selection;

class LinkText : public QTextBrowser {
  Q_OBJECT
 public:
  explicit LinkText(Selection& selection, QWidget* parent = nullptr);
  /// Keeps the scroll position while the subject stays the same.
  void showHtml(const QString& html, bool isSameSubject);
  void setEmptyText(const QString& text);

 signals:
  /// A question, for the panel around.
  void asked(const cleave::views::WhyNotTarget& question);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString m_shown;
  QString m_emptyText;
};

}  // namespace cleave::views
