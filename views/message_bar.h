#pragma once
/// One sentence under the graph: what failed, what ended, what to know. Never a modal box.
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
  void show(const QString& text, Severity severity, About about = About::Moment);
  /// Takes the bar away when what it speaks of is among these.
  void withdraw(const std::vector<About>& gone);
  QString text() const;

 signals:
  // Around being shown, hidden or given another text, where its height may become another one.
  void aboutToPlace();
  void placed();

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void place(bool isVisible);
  QLabel* m_text;
  About m_about = About::Moment;
  Severity m_severity = Severity::Info;
  QTimer m_timer;
};

}  // namespace cleave::views
