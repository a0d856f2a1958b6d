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
  bool isBusy() const { return m_worker.isBusy(); }
  Worker& worker() { return m_worker; }

 private:
  Notices& m_notices;
  Worker m_worker;
};

}  // namespace cleave::views
