#pragma once
/// Runs in which one rank is started differently, by a shell script in place of cleave-rank.
#include "launch/launcher.h"
#include "tests/support/cli_process.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

namespace cleave::test {

class OddRanks {
 public:
  QString path(const QString& name) const { return m_folder.filePath(name); }

  QString makePlan(const QString& name, const QStringList& options) const {
    const QString file = path(name);
    const Finished done = cli(QStringList{"plan"} + options + QStringList{"--json", file});
    if (done.exitCode != 0) qFatal("%s", done.err.constData());
    return file;
  }

  /// Rank `odd` runs `preparation` before it becomes cleave-rank. The script may change "$plan" and "$more" (further
  /// arguments).
  launch::LaunchRequest request(const QString& plan, int ranks, int odd, const QString& preparation) const {
    const QString script = path("rank.sh");
    QFile out(script);
    if (!out.open(QIODevice::WriteOnly)) qFatal("cannot write the script");
    out.write(
        QStringLiteral("#!/bin/sh\nplan=$1\nmore=\nshift\nif [ \"$RANK\" = %1 ]; then :\n%2\nfi\nexec " CLEAVE_BIN_DIR
                       "/cleave-rank \"$plan\" \"$@\" $more\n")
            .arg(odd)
            .arg(preparation)
            .toUtf8());
    out.close();
    out.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    launch::LaunchRequest result;
    result.rankProgram = script.toStdString();
    result.planFile = plan.toStdString();
    result.ranks = ranks;
    result.silence = std::chrono::seconds(60);
    return result;
  }

 private:
  QTemporaryDir m_folder;
};

/// "rank 1, code 3: ended with code 3: Rank 1 ..."; "succeeded".
inline QString inWords(const Result<launch::RunOutcome>& outcome) {
  if (!outcome) return QString::fromStdString(outcome.error().message);
  if (outcome->succeeded) return QStringLiteral("succeeded");
  const launch::RankExit& failure = *outcome->firstFailure;
  return QString::fromStdString(
      fmt::format("rank {}, code {}: {}: {}", failure.rank, exitCode(failure.code), failure.what, failure.lastMessage));
}

}  // namespace cleave::test
