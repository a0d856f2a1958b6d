#pragma once
/// The JSON output of a `cleave-cli` command, and the models for its tests.
#include "tests/support/cli_process.h"

#include <QJsonDocument>
#include <QJsonObject>

namespace cleave::test {

/// A model in ../shared/models.
inline QString model(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/models/") + name; }
/// A model in tests/data/families, and its expected training in tests/data/training.
inline QString family(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/families/") + name; }
inline QString training(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/training/") + name; }
/// A model in resources/models.
inline QString bundled(const QString& name) { return QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/") + name; }

/// The settings of tests/tools/training_runs.py.
inline const QStringList kAsExpected{"--steps",        "5",    "--optimizer", "adamw", "--lr", "0.001",
                                     "--weight-decay", "0.01", "--clip-norm", "1"};
/// Splits small models, although it does not pay.
inline const QStringList kSplit{"--engine", "reference", "--candidates", "full"};

/// Empty if the command ends with another exit code; then its error output is printed.
inline QJsonObject json(const QStringList& arguments, int expectedExit = 0) {
  const Finished done = cli(arguments + QStringList{QStringLiteral("--json"), QStringLiteral("-")});
  if (done.exitCode == expectedExit) return QJsonDocument::fromJson(done.out).object();
  qWarning("exit code %d: %s", done.exitCode, done.err.constData());
  return {};
}

inline qint64 stepFs(const QJsonObject& plan) { return plan["cost"].toObject()["step_fs"].toInteger(); }

}  // namespace cleave::test
