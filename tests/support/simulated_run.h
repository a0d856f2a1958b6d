#pragma once
/// Runs programs on the simulated GPU (simulated_gpu/settings.h has its settings).
#include "tests/support/cli_process.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QProcessEnvironment>

namespace cleave::test {

inline QString simulatedProgram(const QString& name) {
  return QStringLiteral(CLEAVE_BIN_DIR "/../simulated/bin/") + name;
}

/// `settings`: "devices=2,delay_us=50".
inline Finished onSimulatedGpu(const QString& settings, const QString& program, const QStringList& arguments,
                               int timeoutMs = 120'000) {
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert(QStringLiteral("SIMULATED_GPU"), settings);
  process.setProcessEnvironment(environment);
  process.start(program, arguments);
  process.closeWriteChannel();
  return finishedOf(process, timeoutMs);
}

/// The test is in the folder `simulated`, so it finds the programs that load the simulated GPU.
inline Finished simulatedRun(const QStringList& arguments, const QString& settings = QStringLiteral("devices=4")) {
  qputenv("SIMULATED_GPU", settings.toUtf8());
  Finished done = cli(QStringList{"run"} + arguments + QStringList{"--backend", "nccl"});
  qunsetenv("SIMULATED_GPU");
  return done;
}

/// The report of a run that must pass. Otherwise `wrong` contains its output.
inline QJsonObject passedReport(const QStringList& arguments, QByteArray& wrong,
                                const QString& settings = QStringLiteral("devices=4")) {
  const Finished done = simulatedRun(arguments + QStringList{"--json", "-"}, settings);
  const QJsonObject report = QJsonDocument::fromJson(done.out).object();
  if (done.exitCode != 0 || !report["passed"].toBool())
    wrong = "exit code " + QByteArray::number(done.exitCode) + ": " + arguments.join(' ').toUtf8() + "\n" + done.err +
            done.out.right(3000);
  return report;
}

}  // namespace cleave::test
