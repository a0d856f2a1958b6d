#include "views/session/jobs.h"

#include "views/base/text.h"

namespace cleave::views {

namespace {
QString tagOf(Activity what) { return QString::number(static_cast<int>(what)); }
}  // namespace

Jobs::Jobs(Notices& notices, QObject* parent) : QObject(parent), m_notices(notices), m_worker(this) {
  connect(
      &m_worker, &Worker::progressed, this,
      [this](const QString&, const QString& stage, qint64 done, qint64 total) { emit progressed(stage, done, total); });
}

void Jobs::setActivity(Activity activity) {
  if (m_activity == activity) return;
  m_activity = activity;
  emit activityChanged();
}

void Jobs::start(Activity what, const QString& title, Worker::Work work) {
  m_worker.post(tagOf(what), title, std::move(work));
  setActivity(what);
}

void Jobs::settle(Activity what) {
  if (m_activity == what) setActivity(Activity::Idle);
}

void Jobs::end(Activity what, bool hasSucceeded, const QString& sentence) {
  settle(what);
  if (!sentence.isEmpty()) m_notices.log(sentence);
  emit ended(what, hasSucceeded, sentence);
}

hub::Watcher Jobs::watcher() {
  const Worker::CompletionPoster completionPoster = m_worker.completionPoster();
  hub::Watcher watcher;
  watcher.onState = [this, completionPoster](const hub::DownloadState& state) {
    completionPoster([this, state] { emit downloading(state); });
  };
  watcher.onNote = [this, completionPoster](const std::string& note) {
    completionPoster([this, note] { m_notices.say(toQ(note), Severity::Info); });
  };
  return watcher;
}

void Jobs::stop() {
  m_worker.cancelAll();
  emit stopWanted();
}

}  // namespace cleave::views
