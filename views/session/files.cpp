#include "views/session/files.h"

#include "views/base/save_file.h"
#include "views/base/text.h"

namespace cleave::views {

Files::Files(Notices& notices, QObject* parent) : QObject(parent), m_notices(notices), m_worker(this), m_drawing(this) {
  const auto setDrawn = [this](const QString& title) {
    m_drawn = title;
    emit drawingChanged();
  };
  connect(&m_drawing, &Worker::started, this, [=](const QString&, const QString& title) { setDrawn(title); });
  connect(&m_drawing, &Worker::finished, this, [=] { setDrawn({}); });
}

void Files::save(const QString& file, std::function<QByteArray()> make, const QString& note) {
  write(
      file, [file, make = std::move(make)](const Progress& progress) { return saveFile(file, make(), progress); },
      note);
}

void Files::exportPlan(const QString& file, std::shared_ptr<const plan::Plan> plan, const exchange::Format& format) {
  Worker& worker = format.isPicture ? m_drawing : m_worker;
  const QString title = (format.isPicture ? QStringLiteral("Drawing %1") : QStringLiteral("Writing %1")).arg(file);
  worker.post(file, title, [=, this, &format](const Progress& progress) -> Worker::Completion {
    QStringList unsaid;
    auto written = checkIsFile(file);
    auto exported = written ? format.write(*plan, {.progress = progress}) : tl::unexpected<Error>(written.error());
    if (exported) {
      for (const std::string& sentence : exported->sentences) unsaid << toQ(sentence);
      written = saveFile(file, QByteArray::fromStdString(exported->text), progress);
    }
    std::optional<Error> failure;
    if (!exported || !written) failure = exported ? written.error() : exported.error();
    return [=, this] {
      if (failure) {
        const bool isStopped = failure->code == ErrorCode::Cancelled;
        return m_notices.say(toQ(failure->message), isStopped ? Severity::Info : Severity::Failure);
      }
      const QString where = QStringLiteral("Written to %1 (%2).").arg(file, toQ(format.name));
      if (unsaid.isEmpty()) return m_notices.say(where, Severity::Good);
      for (const QString& sentence : unsaid) m_notices.log(sentence);
      const QString others =
          unsaid.size() > 1
              ? QStringLiteral(" (%1 more in the log)")
                    .arg(countedText(static_cast<std::uint64_t>(unsaid.size() - 1), QStringLiteral("note")))
              : QString();
      m_notices.say(QStringLiteral("%1 Not included: %2%3").arg(where, unsaid.front(), others), Severity::Warning);
    };
  });
}

void Files::write(const QString& file, std::function<Result<void>(const Progress&)> write, const QString& note) {
  m_worker.post(file, QStringLiteral("Writing %1").arg(file),
                [=, this](const Progress& progress) -> Worker::Completion {
                  auto written = checkIsFile(file);
                  if (written) written = write(progress);
                  return [=, this] {
                    if (written)
                      m_notices.say(QStringLiteral("Written to %1. %2").arg(file, note).trimmed(), Severity::Good);
                    else
                      m_notices.say(toQ(written.error().message), Severity::Failure);
                  };
                });
}

void Files::close(Worker::Clock::time_point until) {
  m_drawing.close();
  m_worker.waitUntilIdle(until);
  m_worker.close();
}

void Files::join(Worker::Clock::time_point until) {
  m_worker.join(until);
  m_drawing.join(until);
}

}  // namespace cleave::views
