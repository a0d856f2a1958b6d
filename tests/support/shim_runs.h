#pragma once
/// Runs the built programs on the CUDA shims (support/cuda_shims/settings.h), and reads the log of their calls.
///
///     ShimRuns shims;
///     const Finished done = shims.run(QStringLiteral("hang=1:2"), "cleave-cli", {"run", ...});
///     QVERIFY(shims.calls(1).contains("ncclCommAbort"));
#include "tests/support/cli_process.h"
#include "tests/support/machines.h"

#include <QFile>
#include <QProcessEnvironment>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <signal.h>

#include <array>
#include <memory>

namespace cleave::test {

class ShimRuns {
 public:
  /// The reason why the shims are missing; empty if they were built.
  static QString whyNone() {
    const bool isThere =
        QFile::exists(preloadFile()) && QFile::exists(QStringLiteral(CLEAVE_BIN_DIR "/libcleave_nccl.so"));
    return isThere ? QString()
                   : QStringLiteral("the CUDA shims are not built: see tests/support/cuda_shims/CMakeLists.txt");
  }

  /// Environment variables of later runs.
  void set(const QString& name, const QString& value) { m_environment.insert(name, value); }

  /// Starts with an empty log.
  std::unique_ptr<QProcess> start(const QString& settings, const QString& program, const QStringList& arguments) {
    QFile::remove(logFile());
    return startOne(environmentOf(settings), program, arguments);
  }
  Finished run(const QString& settings, const QString& program, const QStringList& arguments) {
    const auto process = start(settings, program, arguments);
    return finishedOf(*process);
  }

  /// Starts `cleave-rank` twice, as a user who starts ranks separately does.
  std::array<std::unique_ptr<QProcess>, 2> startRanks(const QString& settings, const QStringList& arguments) {
    QFile::remove(logFile());
    const QString port = QString::number(freePort());
    std::array<std::unique_ptr<QProcess>, 2> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      QProcessEnvironment environment = environmentOf(settings);
      environment.insert("RANK", QString::number(rank));
      environment.insert("LOCAL_RANK", QString::number(rank));
      environment.insert("WORLD_SIZE", "2");
      environment.insert("MASTER_ADDR", "127.0.0.1");
      environment.insert("MASTER_PORT", port);
      ranks[static_cast<std::size_t>(rank)] = startOne(environment, "cleave-rank", arguments);
    }
    return ranks;
  }

  /// The calls of this rank's process, without "rank=0 pid=123 ", one line per call.
  QStringList calls(int rank) const {
    QStringList found;
    for (const QString& line : log()) {
      if (line.startsWith(QStringLiteral("rank=%1 ").arg(rank))) found += line.section(' ', 2);
    }
    return found;
  }
  /// Number of lines of this rank that start with `text`.
  qsizetype count(int rank, const QString& text) const {
    return calls(rank).filter(QRegularExpression("^" + QRegularExpression::escape(text))).size();
  }

  /// Waits until this rank's log has a line that starts with `text`, then kills its process.
  bool killOnceItCalls(int rank, const QString& text) const {
    return waitUntil([&] { return count(rank, text) > 0; }) && ::kill(processOf(rank, text), SIGKILL) == 0;
  }

  QString path(const QString& name) const { return m_folder.filePath(name); }
  QStringList log() const {
    QFile file(logFile());
    if (!file.open(QIODevice::ReadOnly)) return {};
    return QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts);
  }

 private:
  static QString preloadFile() { return QStringLiteral(CLEAVE_BIN_DIR "/../shims/preload"); }
  QString logFile() const { return path("calls.log"); }

  QProcessEnvironment environmentOf(const QString& settings) const {
    QFile preload(preloadFile());
    if (!preload.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(preload.fileName()));
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.remove("CUDA_VISIBLE_DEVICES");
    environment.insert(m_environment);
    environment.insert("LD_PRELOAD", QString::fromUtf8(preload.readAll()));
    environment.insert("CUDA_SHIMS", settings + ",log=" + logFile());
    return environment;
  }

  static std::unique_ptr<QProcess> startOne(const QProcessEnvironment& environment, const QString& program,
                                            const QStringList& arguments) {
    auto process = std::make_unique<QProcess>();
    process->setProcessEnvironment(environment);
    process->start(QStringLiteral(CLEAVE_BIN_DIR "/") + program, arguments);
    process->closeWriteChannel();
    return process;
  }

  pid_t processOf(int rank, const QString& text) const {
    const QRegularExpression line(
        QStringLiteral("^rank=%1 pid=(\\d+) %2").arg(rank).arg(QRegularExpression::escape(text)));
    for (const QString& each : log()) {
      if (const auto match = line.match(each); match.hasMatch()) return match.captured(1).toInt();
    }
    return 0;
  }

  QTemporaryDir m_folder;
  QProcessEnvironment m_environment;
};

}  // namespace cleave::test
