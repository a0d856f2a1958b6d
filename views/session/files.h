#pragma once
/// Writes files and checks opened files against their models, in the background at the lowest priority. Reports results
/// through Notices. GUI thread only.
#include <QByteArray>
#include <functional>

#include "base/result.h"
#include "exchange/formats.h"
#include "views/session/notices.h"
#include "views/worker/worker.h"

namespace cleave::views {

class Files : public QObject {
  Q_OBJECT
 public:
  explicit Files(Notices& notices, QObject* parent = nullptr);
  /// Calls `make` and writes its result, both on the worker. Reports success, followed by `note`.
  void save(const QString& file, std::function<QByteArray()> make, const QString& note = {});
  /// The same for a function that writes by itself.
  void write(const QString& file, std::function<Result<void>(const Progress&)> write, const QString& note = {});
  /// Writes a plan in a foreign format. The notice lists the facts that the format cannot contain.
  void exportPlan(const QString& file, std::shared_ptr<const plan::Plan> plan, const exchange::Format& format);
  bool isBusy() const { return m_worker.isBusy() || m_drawing.isBusy(); }
  Worker& worker() { return m_worker; }
  /// "Drawing plan.svg". A drawing may take minutes and does not block other writes. Empty: nothing is being drawn.
  const QString& drawing() const { return m_drawn; }
  void stopDrawing() { m_drawing.cancelAll(); }
  /// Finishes the pending writes within this time limit. Later writes are rejected.
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
