#pragma once
/// Saved runs, newest first. The folder has one file per run, in the format of `run --json` (schema "cleave.run/1"),
/// and at most kMostKept of them. Other files in the folder are not touched, and unreadable ones are skipped and
/// reported in one sentence. Without a folder, runs are kept for this session only. GUI thread only.
///
///     history.keepIn(QStringLiteral("~/.local/share/cleave/cleave/runs"));
///     history.add(toQ(pipeline::toJson(report, plan)));     // `changed` follows
///     history.runs()[0]->run.report.verdict;
#include <QDateTime>
#include <QObject>
#include <memory>
#include <vector>

#include "pipeline/report/report_read.h"
#include "views/worker/worker.h"

namespace cleave::views {

struct KeptRun {
  QString name;  ///< file name with the end time: "20261124-235119-042.json"
  QDateTime at;
  pipeline::PastRun run;
};

class RunHistory : public QObject {
  Q_OBJECT
 public:
  static constexpr int kMostKept = 200;
  explicit RunHistory(QObject* parent = nullptr);

  /// Reads the folder's runs. The folder is created with the first saved run.
  void keepIn(const QString& folder);
  const QString& folder() const { return m_folder; }
  const std::vector<std::shared_ptr<const KeptRun>>& runs() const { return m_runs; }
  /// Adds the JSON report of a run that has just ended.
  void add(const std::string& report);
  /// Also deletes its file.
  void forget(std::size_t index);
  /// One sentence about files that could not be read or written. Empty: no error.
  const QString& trouble() const { return m_trouble; }
  bool isBusy() const { return m_worker.isBusy(); }
  Worker& worker() { return m_worker; }

 signals:
  void changed();

 private:
  void insert(std::shared_ptr<const KeptRun> run);
  void remove(const QString& name);
  QString pathOf(const QString& name) const;
  QString m_folder;  ///< empty: no folder
  std::vector<std::shared_ptr<const KeptRun>> m_runs;
  QString m_trouble;
  Worker m_worker;
};

}  // namespace cleave::views
