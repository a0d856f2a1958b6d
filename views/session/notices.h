#pragma once
/// What the program has to say: one sentence at a time for the message bar, and lines for the log. The parts of a
/// session speak here and know no window. GUI thread only.
///
///     notices.say(tr("Written to %1.").arg(file), Severity::Good);
#include <QObject>
#include <QString>

namespace cleave::views {

enum class Severity { Info, Good, Warning, Failure };

/// What a sentence speaks of: it goes with it.
enum class About {
  Moment,  ///< what the user has just asked for: a file that cannot be read, a pin that matches nothing
  Model,   ///< the open model
  Plan,    ///< the branch shown
  Step,    ///< the present step of the search
  Run,     ///< the run under way
  Outcome  ///< what came of the run shown: its view says it too
};

class Notices : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  /// An empty text takes back what was said of the same.
  void say(const QString& text, Severity severity, About about = About::Moment) { emit said(text, severity, about); }
  void log(const QString& line) { emit logged(line); }

 signals:
  void said(const QString& text, cleave::views::Severity severity, cleave::views::About about);
  void logged(const QString& line);
};

}  // namespace cleave::views
