#pragma once
/// Rich text in the window's fonts and colours. It can be selected, copied, and used by keyboard (Tab moves between
/// links, Enter follows one). `followed` reports the target of a link.
#include <QTextBrowser>

#include "views/base/target.h"

namespace cleave::views {

class LinkText : public QTextBrowser {
  Q_OBJECT
 public:
  explicit LinkText(QWidget* parent = nullptr);
  /// Keeps the scroll position while the subject stays the same.
  void showHtml(const QString& html, bool isSameSubject);
  void setEmptyText(const QString& text);

 signals:
  void followed(const cleave::views::Target& target);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString m_shown;
  QString m_emptyText;
};

}  // namespace cleave::views
