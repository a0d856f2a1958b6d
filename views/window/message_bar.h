#pragma once
/// What failed, what ended, what to know, in a few lines under the graph (all of it in the tooltip and in the log).
/// Never a modal box. What there is to know of the plan stands for as long as the plan is shown: other sentences stand
/// before it, and when they go it is there again.
#include <QFrame>
#include <QTimer>
#include <optional>

#include "views/session/notices.h"

class QLabel;

namespace cleave::views {

class MessageBar : public QFrame {
  Q_OBJECT
 public:
  explicit MessageBar(QWidget* parent = nullptr);
  /// An empty text takes back what was said of the plan, or else. Failures and warnings stay until closed or replaced;
  /// the rest goes by itself.
  void show(const QString& text, Severity severity, About about = About::Moment);
  /// Takes away what speaks of these.
  void withdraw(const std::vector<About>& gone);
  QString text() const;

 signals:
  // Around being shown, hidden or given another text, where its height may become another one.
  void aboutToPlace();
  void placed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Said {
    QString text;
    Severity severity = Severity::Info;
    About about = About::Moment;
  };
  std::optional<Said>& current() { return m_passing ? m_passing : m_ofPlan; }
  const std::optional<Said>& current() const { return m_passing ? m_passing : m_ofPlan; }
  void leave();
  void refresh();
  void fitText();
  QLabel* m_text;
  std::optional<Said> m_ofPlan, m_passing;
  QTimer m_timer;
};

}  // namespace cleave::views
