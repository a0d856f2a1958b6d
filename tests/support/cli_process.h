#pragma once
/// Runs a built program and gives back what it printed.
#include <QElapsedTimer>
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

/// Waits for a process that was started; one that takes longer is killed, and counts as crashed.
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

/// The program itself.
inline Finished cliProgram(const QStringList& arguments, const QByteArray& input = {}) {
  return runProgram(QStringLiteral("cleave-cli"), arguments, input);
}

/// `cleave-cli` in a process of its own. Where a test is linked with it, a fork of the test, which has LibTorch loaded
/// already: loading it is most of what a short command takes. What starts other programs looks for them beside itself,
/// so that is the program.
inline Finished cli(const QStringList& arguments, const QByteArray& input = {}) {
#ifdef CLEAVE_TESTS_LINK_CLI
  if (arguments.value(0) != QLatin1String("run") && arguments.value(0) != QLatin1String("calibrate")) {
    std::vector<std::string> words;
    for (const QString& argument : arguments) words.push_back(argument.toStdString());
    const ForkedCli done = runForkedCli(std::move(words), {input.constData(), static_cast<std::size_t>(input.size())});
    return {done.exitCode, done.crashed, QByteArray::fromStdString(done.out), QByteArray::fromStdString(done.err)};
  }
#endif
  return cliProgram(arguments, input);
}

}  // namespace cleave::test
