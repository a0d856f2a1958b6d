#include "views/session/files.h"

#include "views/base/save_file.h"
#include "views/base/text.h"

namespace cleave::views {

Files::Files(Notices& notices, QObject* parent) : QObject(parent), m_notices(notices), m_worker(this) {}

void Files::save(const QString& file, std::function<QByteArray()> make, const QString& note) {
  write(
      file, [file, make = std::move(make)](const Progress& progress) { return saveFile(file, make(), progress); },
      note);
}

void Files::write(const QString& file, std::function<Result<void>(const Progress&)> write, const QString& note) {
  m_worker.post(file, tr("Writing %1").arg(file), [=, this](const Progress& progress) -> Worker::Completion {
    auto written = checkIsFile(file);
    if (written) written = write(progress);
    return [=, this] {
      if (written)
        m_notices.say(tr("Written to %1. %2").arg(file, note).trimmed(), Severity::Good);
      else
        m_notices.say(toQ(written.error().message), Severity::Failure);
    };
  });
}

}  // namespace cleave::views
