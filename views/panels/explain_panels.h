#pragma once
/// The decision panel and the conflict card: rich text that follows the document, whose links move the focus.
#include <QTextBrowser>
#include <QTimer>
#include <QWidget>

#include "panels/explain_text.h"

class QLabel;
class QPushButton;

namespace cleave::views {

/// Rich text with the window's fonts and colours; a link moves the document's focus, "pin:SPEC" and
/// "unpin:SPEC" change the pins.
class LinkText : public QTextBrowser {
  Q_OBJECT
 public:
  explicit LinkText(Document& document, QWidget* parent = nullptr);
  /// Keeps the scroll position while the subject stays the same.
  void showHtml(const QString& html, bool isSameSubject);
  void setEmptyText(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString m_shown;
  QString m_emptyText;
};

class DecisionPanel : public QWidget {
  Q_OBJECT
 public:
  explicit DecisionPanel(Document& document, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refresh();
  void fillMenu(QPushButton* button, const std::vector<PinOffer>& offers);
  Document& m_document;
  QLabel* m_title;
  LinkText* m_text;
  QPushButton* m_pin;
  QPushButton* m_forbid;
  QPushButton* m_breakpoint;
  QPushButton* m_next;
  QTimer m_refreshTimer;  ///< several signals, one refresh
  Focus m_shownFocus;
};

class ConflictCard : public QWidget {
  Q_OBJECT
 public:
  explicit ConflictCard(Document& document, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refresh();
  Document& m_document;
  LinkText* m_text;
  QTimer m_refreshTimer;
};

}  // namespace cleave::views
