/// The memory of a run's ranks: current figures and their peaks.
#include "tests/support/seeds.h"
#include "views/session/run_monitor.h"

#include <QTest>

#include <random>

using namespace cleave;
using namespace cleave::views;

namespace {

RankMemory after(RunMonitor& monitor, const protocol::MemorySample& sample) {
  launch::RankEvent event;
  event.rank = 0;
  event.message = sample;
  monitor.apply(event);
  return monitor.snapshot().front().memory;
}

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

class TestRunMonitor : public QObject {
  Q_OBJECT

 private slots:
  /// A CPU rank: the process's memory includes LibTorch's code, which the allocator does not count.
  void thePeakOfTheProcessHoldsTheProcess() {
    RunMonitor monitor(1);
    protocol::MemorySample sample;
    sample.weights = 100 * kMiB;
    sample.activations = 4 * kMiB;
    sample.peakActivations = 20 * kMiB;
    sample.allocated = 104 * kMiB;
    sample.peak = 304 * kMiB;
    sample.rss = sample.deviceUsed = 422 * kMiB;
    sample.peakRss = 430 * kMiB;
    const RankMemory memory = after(monitor, sample);
    QCOMPARE(memory.process(), 422 * kMiB);
    QCOMPARE(memory.peak.process, 430 * kMiB);
    QCOMPARE(memory.program(), 104 * kMiB);
    QCOMPARE(memory.peak.program, 304 * kMiB);
  }

  /// Gradients, optimizer states and saved activations are part of the program.
  void whatTrainingKeepsIsOfTheProgram() {
    RunMonitor monitor(1);
    protocol::MemorySample sample;
    sample.weights = 100 * kMiB;
    sample.activations = 4 * kMiB;
    sample.allocated = sample.peak = 404 * kMiB;
    sample.rss = sample.deviceUsed = sample.peakRss = 522 * kMiB;
    const RankMemory memory = after(monitor, sample);
    QCOMPARE(memory.kept, 300 * kMiB);
    QCOMPARE(memory.program(), 404 * kMiB);
    QCOMPARE(memory.process(), 522 * kMiB);
  }

  /// The launcher's notices about a rank are separate from the rank's own lines.
  void whatIsSeenOfARankIsTold() {
    RunMonitor monitor(2);
    monitor.apply({1, std::nullopt, "a line of its own", {}});
    monitor.apply({1, std::nullopt, {}, "Rank 1 keeps the other waiting."});
    const RankView rank = monitor.snapshot()[1];
    QCOMPARE(rank.log, QStringList({"a line of its own", "(seen from outside) Rank 1 keeps the other waiting."}));
    QCOMPARE(rank.noticed, QString("Rank 1 keeps the other waiting."));
    QVERIFY(monitor.snapshot()[0].noticed.isEmpty());
  }

  /// No rank is shown as running after its run.
  void noRankRunsAfterItsRun() {
    for (const bool hasOutcome : {false, true}) {
      RunMonitor monitor(3);
      for (int rank = 0; rank < 3; ++rank) {
        launch::RankEvent event;
        event.rank = rank;
        event.message = protocol::PhaseChange{rank == 2 ? protocol::Phase::Done : protocol::Phase::Running};
        monitor.apply(event);
      }
      launch::RunOutcome outcome;
      outcome.firstFailure = launch::RankExit{.rank = 1, .what = "was killed"};
      monitor.finish(hasOutcome ? &outcome : nullptr);
      const auto ranks = monitor.snapshot();
      QCOMPARE(ranks[0].state(), QStringLiteral("stopped (running)"));
      QCOMPARE(ranks[1].state(), hasOutcome ? QStringLiteral("failed") : QStringLiteral("stopped (running)"));
      QCOMPARE(ranks[2].state(), QStringLiteral("done"));
    }
  }

  /// The figures of a rank's final report stay, whatever is sampled after it.
  void aReportHasTheSameFigures() {
    RunMonitor monitor(1);
    protocol::MemorySample sample;
    sample.weights = 100 * kMiB;
    sample.peak = 120 * kMiB;
    sample.rss = sample.deviceUsed = 290 * kMiB;
    sample.peakRss = 300 * kMiB;
    protocol::RankResult result;
    result.peak = protocol::peakOf(sample);
    QCOMPARE(after(monitor, sample).peak, result.peak);
    launch::RankEvent event;
    event.rank = 0;
    event.message = result;
    monitor.apply(event);
    sample.peakRss = 310 * kMiB;
    QCOMPARE(after(monitor, sample).peak, result.peak);
  }

  /// A GPU rank: contexts and NCCL's buffers are not part of a prediction.
  void communicationIsOfTheProcess() {
    RunMonitor monitor(1);
    protocol::MemorySample sample;
    sample.weights = 100 * kMiB;
    sample.activations = 10 * kMiB;
    sample.communication = 700 * kMiB;
    sample.peak = 130 * kMiB;
    sample.deviceUsed = 850 * kMiB;
    const RankMemory memory = after(monitor, sample);
    QCOMPARE(memory.program(), 110 * kMiB);
    QCOMPARE(memory.peak.program, 130 * kMiB);
    QCOMPARE(memory.peak.process, 850 * kMiB);
  }

  void noCurrentFigureIsAboveItsPeak() {
    std::mt19937_64 random(test::seed(7));
    const auto any = [&] { return static_cast<std::int64_t>(random() % 1000) * kMiB; };
    RunMonitor monitor(1);
    RankMemory before;
    for (std::uint64_t left = test::rounds(2000); left > 0; --left) {
      protocol::MemorySample sample;
      sample.weights = any();
      sample.activations = any();
      sample.peakActivations = any();
      sample.communication = random() % 2 ? any() : 0;
      sample.allocated = any();
      sample.peak = any();
      sample.rss = any();
      sample.deviceUsed = random() % 2 ? sample.rss : any();
      sample.peakRss = random() % 2 ? any() : 0;
      const RankMemory memory = after(monitor, sample);
      QVERIFY(memory.peak.program >= memory.program());
      QVERIFY(memory.peak.process >= memory.process());
      QVERIFY(memory.peak.process >= memory.peak.program);
      QVERIFY(memory.peak.program >= before.peak.program && memory.peak.process >= before.peak.process);
      before = memory;
    }
  }
};

QTEST_APPLESS_MAIN(TestRunMonitor)
#include "tst_run_monitor.moc"
