#pragma once
/// Failures, results and hints in a few lines below the graph. The tooltip and the log have the full text. Never a
/// modal box. The plan's message stays as long as the plan is shown; other messages hide it for a while.
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
  /// An empty text withdraws the message about the plan, or the other one. Failures and warnings stay until closed or
  /// replaced; others disappear after a while.
  void show(const QString& text, Severity severity, About about = About::Moment);
  /// Withdraws messages about these subjects.
  void withdraw(const std::vector<About>& gone);
  QString text() const;

 signals:
  // Emitted around showing, hiding or changing the text, when the height may change.
  void aboutToPlace();
  void placed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct NamedStyles {
    QString text;
    Severity severity = Severity::Info;
    About about = About::Moment;
  };
  std::optional<NamedStyles>& current() { return m_passing ? m_passing : m_ofPlan; }
  const std::optional<NamedStyles>& current() const { return m_passing ? m_passing : m_ofPlan; }
  void leave();
  void refresh();
  void fitText();
  QLabel* m_text;
  std::optional<NamedStyles> m_ofPlan, m_passing;
  QTimer m_timer;
};

}  // namespace cleave::views
