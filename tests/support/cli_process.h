#pragma once
/// Runs a built program and returns its output.
#include <QProcess>
#include <QStringList>

#ifdef CLEAVE_TESTS_LINK_CLI
#include "tests/support/forked_cli.h"
#endif

namespace cleave::test {

struct Finished {
  int exitCode = -1;
  bool crashed = false;
  QByteArray out, err;
};

/// Waits for a started process. A process that exceeds the limit is killed, and counts as crashed.
inline Finished finishedOf(QProcess& process, int timeoutMs = 120'000) {
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

inline Finished runProgram(const QString& program, const QStringList& arguments, const QByteArray& input = {},
                           int timeoutMs = 120'000) {
  QProcess process;
  process.start(QStringLiteral(CLEAVE_BIN_DIR "/") + program, arguments);
  process.write(input);
  process.closeWriteChannel();
  return finishedOf(process, timeoutMs);
}

/// Runs the program itself.
inline Finished cliProgram(const QStringList& arguments, const QByteArray& input = {}) {
  return runProgram(QStringLiteral("cleave-cli"), arguments, input);
}

/// Runs `cleave-cli` in a separate process. If a test links its code, that is a fork of the test, and so are the ranks
/// that it starts: LibTorch is loaded already, and loading takes most of the time of a short command.
inline Finished cli(const QStringList& arguments, const QByteArray& input = {}) {
#ifdef CLEAVE_TESTS_LINK_CLI
  std::vector<std::string> words;
  for (const QString& argument : arguments) words.push_back(argument.toStdString());
  const ForkedCli done = runForkedCli(std::move(words), {input.constData(), static_cast<std::size_t>(input.size())});
  return {done.exitCode, done.crashed, QByteArray::fromStdString(done.out), QByteArray::fromStdString(done.err)};
#else
  return cliProgram(arguments, input);
#endif
}

}  // namespace cleave::test
