#pragma once
/// One sentence above the graph: what failed, what ended, what to know. Never a modal box.
#include <QFrame>
#include <QTimer>

#include "document.h"

class QLabel;

namespace cleave::views {

class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);
  /// An empty text takes the bar away. Failures and warnings stay until closed or replaced; the rest goes by itself.
  void show(const QString& text, Severity severity);
  QString text() const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QLabel* m_text;
  Severity m_severity = Severity::Info;
  QTimer m_timer;
};

}  // namespace cleave::views
