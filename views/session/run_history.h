#pragma once
/// Runs that were made, newest first: the reports that `run --json` writes (schema "cleave.run/1"), one file each in a
/// folder, as many as kMostKept. Whatever else lies there is left alone, and what cannot be read is left out and said
/// in one sentence. Without a folder they are kept for this sitting only. GUI thread only.
///
///     history.keepIn(QStringLiteral("~/.local/share/cleave/cleave/runs"));
///     history.add(toQ(pipeline::toJson(report, plan)));     // `changed` follows
///     history.runs()[0]->run.report.verdict;
#include <QDateTime>
#include <QObject>
#include <memory>
#include <vector>

#include "pipeline/report_read.h"
#include "views/base/worker.h"

namespace cleave::views {

struct KeptRun {
  QString name;  ///< of its file, which says when it ended: "20261124-235119-042.json"
  QDateTime at;
  pipeline::PastRun run;
};

class RunHistory : public QObject {
  Q_OBJECT
 public:
  static constexpr int kMostKept = 200;
  explicit RunHistory(QObject* parent = nullptr);

  /// Reads what lies there; the folder is made when the first run is kept.
  void keepIn(const QString& folder);
  const QString& folder() const { return m_folder; }
  const std::vector<std::shared_ptr<const KeptRun>>& runs() const { return m_runs; }
  /// A report as JSON, of a run that has just ended.
  void add(const std::string& report);
  /// Its file goes too.
  void forget(std::size_t index);
  /// What could not be read or written, in one sentence; empty: all could.
  const QString& trouble() const { return m_trouble; }
  bool isBusy() const { return m_worker.isBusy(); }
  Worker& worker() { return m_worker; }

 signals:
  void changed();

 private:
  void insert(std::shared_ptr<const KeptRun> run);
  void remove(const QString& name);
  QString pathOf(const QString& name) const;
  QString m_folder;  ///< empty: none
  std::vector<std::shared_ptr<const KeptRun>> m_runs;
  QString m_trouble;
  Worker m_worker;
};

}  // namespace cleave::views
