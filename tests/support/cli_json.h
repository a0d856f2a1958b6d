#pragma once
/// What a command of `cleave-cli` answers as JSON, and the models that the tests of it ask about.
#include "tests/support/cli_process.h"

#include <QJsonDocument>
#include <QJsonObject>

namespace cleave::test {

/// One of ../shared/models.
inline QString model(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/models/") + name; }
/// One of resources/models.
inline QString bundled(const QString& name) { return QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/") + name; }

/// Empty where the command ends with another code: what it said then is printed.
inline QJsonObject json(const QStringList& arguments, int expectedExit = 0) {
  const Finished done = cli(arguments + QStringList{QStringLiteral("--json"), QStringLiteral("-")});
  if (done.exitCode == expectedExit) return QJsonDocument::fromJson(done.out).object();
  qWarning("exit code %d: %s", done.exitCode, done.err.constData());
  return {};
}

inline qint64 stepFs(const QJsonObject& plan) { return plan["cost"].toObject()["step_fs"].toInteger(); }

}  // namespace cleave::test
