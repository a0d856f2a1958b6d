#pragma once
/// Runs a built program and gives back what it printed.
#include <QElapsedTimer>
#include <QProcess>
#include <QStringList>

namespace cleave::test {

struct Finished {
  int exitCode = -1;
  bool crashed = false;
  QByteArray out, err;
};

inline Finished runProgram(const QString& program, const QStringList& arguments, const QByteArray& input = {},
                           int timeoutMs = 120'000) {
  QProcess process;
  process.start(QStringLiteral(CLEAVE_BIN_DIR "/") + program, arguments);
  process.write(input);
  process.closeWriteChannel();
  Finished finished;
  if (!process.waitForFinished(timeoutMs)) {
    process.kill();
    process.waitForFinished();
    finished.crashed = true;
  }
  finished.crashed = finished.crashed || process.exitStatus() != QProcess::NormalExit;
  finished.exitCode = process.exitCode();
  finished.out = process.readAllStandardOutput();
  finished.err = process.readAllStandardError();
  return finished;
}

inline Finished cli(const QStringList& arguments, const QByteArray& input = {}) {
  return runProgram(QStringLiteral("cleave-cli"), arguments, input);
}

}  // namespace cleave::test
