#pragma once
/// Files that are written, or held against what they are of, behind everything else. Says through Notices what became
/// of it. GUI thread only.
#include <QByteArray>
#include <functional>

#include "base/result.h"
#include "exchange/formats.h"
#include "views/base/worker.h"
#include "views/session/notices.h"

namespace cleave::views {

class Files : public QObject {
  Q_OBJECT
 public:
  explicit Files(Notices& notices, QObject* parent = nullptr);
  /// Calls `make` and writes what it answers, both on the worker, and says so, followed by `note`.
  void save(const QString& file, std::function<QByteArray()> make, const QString& note = {});
  /// The same for what writes itself.
  void write(const QString& file, std::function<Result<void>(const Progress&)> write, const QString& note = {});
  /// A plan in such a format; what the format cannot say is said behind it.
  void exportPlan(const QString& file, std::shared_ptr<const plan::Plan> plan, const exchange::Format& format);
  bool isBusy() const { return m_worker.isBusy() || m_drawing.isBusy(); }
  Worker& worker() { return m_worker; }
  /// "Drawing plan.svg", which may take minutes and holds up nothing else that is written; empty: nothing is drawn.
  const QString& drawing() const { return m_drawn; }
  void stopDrawing() { m_drawing.cancelAll(); }
  /// What is asked for by now is written, if it does not take longer than this; nothing is written any more.
  void close(Worker::Clock::time_point until);
  void join(Worker::Clock::time_point until);

 signals:
  void drawingChanged();

 private:
  Notices& m_notices;
  QString m_drawn;
  Worker m_worker;
  Worker m_drawing;
};

}  // namespace cleave::views
