#pragma once
/// Messages of the program: one sentence at a time for the message bar, and lines for the log. All parts of a session
/// report here and do not depend on a window. GUI thread only.
///
///     notices.say(QStringLiteral("Written to %1.").arg(file), Severity::Good);
#include <QObject>
#include <QString>

namespace cleave::views {

enum class Severity { Info, Good, Warning, Failure };

/// The subject of a sentence. The sentence disappears with its subject.
enum class About {
  Moment,  ///< the user's latest request: an unreadable file, a pin without a match
  Model,   ///< the open model
  Plan,    ///< the shown branch
  Step,    ///< the current step of the search
  Run,     ///< the current run
  Outcome  ///< the result of the shown run, which its view also shows
};

class Notices : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  /// An empty text withdraws the previous sentence about the same subject.
  void say(const QString& text, Severity severity, About about = About::Moment) { emit said(text, severity, about); }
  void log(const QString& line) { emit logged(line); }

 signals:
  void said(const QString& text, cleave::views::Severity severity, cleave::views::About about);
  void logged(const QString& line);
};

}  // namespace cleave::views
