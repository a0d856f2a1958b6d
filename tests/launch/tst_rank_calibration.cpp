/// Real cleave-rank processes that measure instead of running a plan: their reports and their failures. Times are not
/// compared with limits.
#include "launch/launcher.h"
#include "tests/support/cli_process.h"

#include <QTest>

#include <signal.h>

#include <cmath>
#include <set>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;

namespace {

LaunchRequest request(int ranks) {
  LaunchRequest result;
  result.rankProgram = CLEAVE_BIN_DIR "/cleave-rank";
  result.ranks = ranks;
  result.rankArguments = {"--calibrate"};
  result.silence = std::chrono::seconds(60);
  return result;
}

struct Heard {
  std::vector<std::vector<Measurement>> byRank;
  RunOutcome outcome;
};

Heard calibrate(int ranks) {
  Heard heard;
  heard.byRank.resize(static_cast<std::size_t>(ranks));
  const auto outcome = launch::launch(request(ranks), [&](const RankEvent& event) {
    const auto* measured = event.message ? std::get_if<Measurement>(&*event.message) : nullptr;
    if (measured) heard.byRank[static_cast<std::size_t>(event.rank)].push_back(*measured);
  });
  if (!outcome) qFatal("%s", outcome.error().message.c_str());
  heard.outcome = *outcome;
  return heard;
}

}  // namespace

class RankCalibrationTest : public QObject {
  Q_OBJECT
 private slots:
  void ranksMeasureTheSameTogether() {
    const Heard heard = calibrate(2);
    QVERIFY2(heard.outcome.succeeded,
             heard.outcome.firstFailure ? heard.outcome.firstFailure->lastMessage.c_str() : "no failure");
    QCOMPARE(heard.byRank[0].size(), heard.byRank[1].size());
    std::set<Measured> kinds;
    for (std::size_t i = 0; i < heard.byRank[0].size(); ++i) {
      const Measurement &own = heard.byRank[0][i], &other = heard.byRank[1][i];
      QVERIFY(own.what == other.what && own.amount == other.amount && own.repeats == other.repeats);
      kinds.insert(own.what);
      for (const Measurement* each : {&own, &other}) {
        QVERIFY(each->amount > 0 && each->repeats >= 5 && each->threads >= 1);
        QVERIFY(std::isfinite(each->highest) && 0 < each->lowest);
        QVERIFY(each->lowest <= each->median && each->median <= each->highest);
      }
    }
    QCOMPARE(kinds.size(), std::size_t(7));
    for (const auto& result : heard.outcome.results) QVERIFY(result && result->peak.program > 0);
  }

  /// At least two sizes from one KiB on, to separate latency and bandwidth.
  void collectivesAreMeasuredAtSeveralSizes() {
    const Heard heard = calibrate(3);
    QVERIFY(heard.outcome.succeeded);
    for (const Measured kind : {Measured::AllReduce, Measured::AllGather, Measured::ReduceScatter}) {
      std::vector<std::int64_t> sizes;
      for (const Measurement& each : heard.byRank[2]) {
        if (each.what == kind) sizes.push_back(each.amount);
      }
      QVERIFY(sizes.size() >= 2);
      QCOMPARE(sizes.front(), 1020);  // 1 KiB, as three ranks can share it
      QVERIFY(std::is_sorted(sizes.begin(), sizes.end()));
    }
  }

  void oneRankNeedsNoPeer() {
    const Heard heard = calibrate(1);
    QVERIFY(heard.outcome.succeeded);
    for (const Measurement& each : heard.byRank[0]) QVERIFY(each.what <= Measured::Memory);
    QVERIFY(heard.byRank[0].size() >= 4);
  }

  void aKilledRankIsNamed_data() {
    QTest::addColumn<int>("victim");
    QTest::newRow("rank 0") << 0;
    QTest::newRow("rank 1") << 1;
  }
  void aKilledRankIsNamed() {
    QFETCH(int, victim);
    std::int64_t pid = 0;
    const auto outcome = launch::launch(request(2), [&](const RankEvent& event) {
      if (!event.message || event.rank != victim) return;
      if (const auto* hello = std::get_if<Hello>(&*event.message)) pid = hello->pid;
      if (std::holds_alternative<Measurement>(*event.message) && pid > 0)
        ::kill(static_cast<pid_t>(std::exchange(pid, 0)), SIGKILL);
    });
    QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
    QVERIFY(!outcome->succeeded);
    QCOMPARE(outcome->firstFailure->rank, victim);
    QVERIFY2(outcome->firstFailure->what.starts_with("was killed by signal 9"), outcome->firstFailure->what.c_str());
  }

  void aRankRunsAPlanOrMeasures() {
    for (const QStringList& arguments : {QStringList{}, QStringList{"plan.json", "--calibrate"}}) {
      const test::Finished done = test::runProgram("cleave-rank", arguments);
      QCOMPARE(done.exitCode, 2);
      QVERIFY2(done.err.contains("Pass a plan file, --calibrate or --probe"), done.err.constData());
    }
  }
};

QTEST_GUILESS_MAIN(RankCalibrationTest)
#include "tst_rank_calibration.moc"
