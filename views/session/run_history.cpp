#include "views/session/run_history.h"

#include <QDir>
#include <QFile>
#include <algorithm>

#include "base/output_file.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
const QString kNameFormat = QStringLiteral("yyyyMMdd-HHmmss-zzz");
const QString kEnding = QStringLiteral(".json");

/// Invalid for a name that no run has.
QDateTime timeOf(const QString& name) {
  if (!name.endsWith(kEnding)) return {};
  QDateTime at = QDateTime::fromString(name.chopped(kEnding.size()), kNameFormat);
  at.setTimeSpec(Qt::UTC);
  return at;
}

bool isNewer(const std::shared_ptr<const KeptRun>& a, const std::shared_ptr<const KeptRun>& b) {
  return a->name > b->name;
}

/// The content of a folder of runs.
struct Found {
  std::vector<std::shared_ptr<const KeptRun>> runs;  ///< newest first
  QString trouble;
};

Found readAll(const QString& folder, const Progress& progress) {
  Found found;
  int bad = 0;
  QString first;
  for (const QString& name :
       QDir(folder).entryList({QLatin1Char('*') + kEnding}, QDir::Files, QDir::Name | QDir::Reversed)) {
    const QDateTime at = timeOf(name);
    if (!at.isValid() || progress.cancelled()) continue;
    if (std::ssize(found.runs) == RunHistory::kMostKept) break;
    const std::string path = toStd(QDir(folder).filePath(name));
    auto text = readTextFile(path, pipeline::kMostReportBytes);
    auto run = text ? pipeline::readReport(*text, path) : Result<pipeline::PastRun>(tl::unexpected(text.error()));
    if (run)
      found.runs.push_back(std::make_shared<const KeptRun>(KeptRun{name, at, *std::move(run)}));
    else if (bad++ == 0)
      first = toQ(run.error().message);
  }
  if (bad == 1) found.trouble = QStringLiteral("A saved run cannot be read and is not listed: %1").arg(first);
  if (bad > 1)
    found.trouble =
        QStringLiteral("%1 saved runs cannot be read and are not listed. The first error: %2").arg(bad).arg(first);
  return found;
}
}  // namespace

RunHistory::RunHistory(QObject* parent) : QObject(parent), m_worker(this) {}

QString RunHistory::pathOf(const QString& name) const { return QDir(m_folder).filePath(name); }

void RunHistory::keepIn(const QString& folder) {
  m_folder = folder;
  m_worker.post(QStringLiteral("read"), {}, [this, folder](const Progress& progress) -> Worker::Completion {
    auto found = std::make_shared<Found>(readAll(folder, progress));
    return [this, found] {
      for (const auto& run : found->runs) insert(run);
      m_trouble = found->trouble;
      emit changed();
    };
  });
}

void RunHistory::add(const std::string& report) {
  QDateTime at = QDateTime::currentDateTimeUtc();
  // Two runs that end within one millisecond must have different names.
  if (!m_runs.empty() && m_runs.front()->at >= at) at = m_runs.front()->at.addMSecs(1);
  const QString name = at.toString(kNameFormat) + kEnding;
  auto run = pipeline::readReport(report, toStd(name));
  if (!run) {
    m_trouble = QStringLiteral("The run was not saved: %1").arg(toQ(run.error().message));
    return emit changed();
  }
  insert(std::make_shared<const KeptRun>(KeptRun{name, at, *std::move(run)}));
  emit changed();
  if (m_folder.isEmpty()) return;
  m_worker.post(name, {}, [this, folder = m_folder, path = pathOf(name), report](const Progress& progress) {
    const bool hasFolder = QDir().mkpath(folder);
    const auto written = hasFolder ? writeFile(toStd(path), report, progress.stopToken())
                                   : fail(ErrorCode::Environment, "The folder {} cannot be created.", toStd(folder));
    return Worker::Completion([this, written] {
      if (written) return;
      m_trouble = QStringLiteral("The run is kept for this session only: %1").arg(toQ(written.error().message));
      emit changed();
    });
  });
}

void RunHistory::insert(std::shared_ptr<const KeptRun> run) {
  m_runs.insert(std::upper_bound(m_runs.begin(), m_runs.end(), run, isNewer), std::move(run));
  while (std::ssize(m_runs) > kMostKept) {
    remove(m_runs.back()->name);
    m_runs.pop_back();
  }
}

void RunHistory::forget(std::size_t index) {
  if (index >= m_runs.size()) return;
  remove(m_runs[index]->name);
  m_runs.erase(m_runs.begin() + static_cast<std::ptrdiff_t>(index));
  emit changed();
}

void RunHistory::remove(const QString& name) {
  if (m_folder.isEmpty()) return;
  // Deletes the file after any pending write to it.
  m_worker.post(QStringLiteral("remove ") + name, {}, [path = pathOf(name)](const Progress&) {
    QFile::remove(path);
    return Worker::Completion([] {});
  });
}

}  // namespace cleave::views
