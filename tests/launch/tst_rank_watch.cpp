/// When a rank counts as failed and when a run ends because of it, with simulated times: no process, no waiting.
#include "launch/rank_watch.h"

#include <QTest>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 10s;

/// Running ranks, unless stated otherwise, and a simulated clock.
struct Story {
  explicit Story(int ranks) : watch(ranks, kPatience), states(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      watch.start(rank, now);
      says(rank, Hello{kProtocolVersion, rank, 100 + rank, "cpu"});
    }
  }
  void says(int rank, const Message& message) {
    watch.addMessage(rank, message);
    watch.markRead(rank, now);
  }
  /// Advances the time; all ranks but the silent one send their heartbeats.
  void pass(std::chrono::milliseconds time, int silent = -1) {
    for (auto left = time; left > 0ms; left -= 100ms) {
      now += std::min<std::chrono::milliseconds>(left, 100ms);
      for (int rank = 0; rank < static_cast<int>(states.size()); ++rank) {
        if (rank != silent && !states[static_cast<std::size_t>(rank)].exited) says(rank, Heartbeat{});
        watch.judge(rank, states[static_cast<std::size_t>(rank)], now, now);
      }
    }
  }
  ChildState& state(int rank) { return states[static_cast<std::size_t>(rank)]; }
  QString what() const { return QString::fromStdString(watch.outcome().firstFailure->what); }

  RankWatch::Time now{};
  std::map<std::size_t, std::chrono::milliseconds> waited;  ///< by rank: time in collectives
  RankWatch watch;
  std::vector<ChildState> states;
};

RankError peerFailed() { return {"all_reduce of 64 bytes timed out.", true, ErrorCode::RankFailed}; }

}  // namespace

class TestRankWatch : public QObject {
  Q_OBJECT
 private slots:
  /// A process with a full GPU takes long to end, and is silent meanwhile.
  void aResultEndsTheWatchOverARank() {
    Story story(2);
    story.pass(1s);
    story.says(1, RankResult{});
    story.pass(3 * kPatience, /*silent=*/1);
    QVERIFY(story.watch.outcome().succeeded);
    QVERIFY2(!story.watch.isTeardownOver(story.now, kPatience), "rank 0 still computes");
    story.says(0, RankResult{});
    story.pass(kPatience, 1);
    QVERIFY(!story.watch.isTeardownOver(story.now, kPatience));
    story.pass(100ms, 1);
    QVERIFY(story.watch.isTeardownOver(story.now, kPatience));
    QVERIFY(story.watch.outcome().succeeded);
  }
  void aRankThatCrashesAfterItsResultFailsTheRun() {
    Story story(1);
    story.says(0, RankResult{});
    story.state(0) = {.exited = true, .signal = 11};
    story.pass(100ms);
    QVERIFY(!story.watch.outcome().succeeded);
  }

  void aRankMayBeSilentUpToTheLimit() {
    Story story(2);
    story.pass(kPatience, /*silent=*/1);
    QVERIFY(story.watch.outcome().succeeded);
    story.pass(100ms, 1);
    QVERIFY(!story.watch.outcome().succeeded);
    QCOMPARE(story.watch.outcome().firstFailure->rank, 1);
    QCOMPARE(story.what(), "sent nothing for 10 s");
  }

  void aRankThatHasNotSpokenYetIsStillLoadingItsLibraries() {
    RankWatch watch(1, kPatience);
    const RankWatch::Time start{};
    watch.start(0, start);
    watch.judge(0, {}, start + 60s, start + 60s);
    QVERIFY(watch.outcome().succeeded);
    watch.judge(0, {}, start + 61s, start + 61s);
    QCOMPARE(QString::fromStdString(watch.outcome().firstFailure->what), "sent nothing for 60 s");
  }

  void aStoppedRankMayGoOnWithinASecond() {
    Story story(2);
    story.state(1).stopped = true;
    story.state(1).signal = 19;
    story.pass(900ms, 1);
    story.state(1).stopped = false;
    story.pass(200ms);
    QVERIFY(story.watch.outcome().succeeded);
    story.state(1).stopped = true;
    story.pass(1200ms, 1);
    QVERIFY2(story.what().startsWith("was stopped by signal 19"), qPrintable(story.what()));
  }

  /// The kernel may report a death after a peer has complained about it.
  void listensALittleLongerForWhatCameFirst() {
    Story story(2);
    story.says(0, peerFailed());
    story.pass(100ms, 0);
    QVERIFY(!story.watch.isSettled(story.now));
    story.state(1) = {.exited = true, .code = 0, .signal = 9};
    story.pass(200ms);
    QCOMPARE(story.watch.outcome().firstFailure->rank, 1);
    QVERIFY2(story.what().startsWith("was killed by signal 9"), qPrintable(story.what()));
    story.pass(200ms);
    QVERIFY(story.watch.isSettled(story.now));
  }

  /// If only peers complain, the last rank may still report an error of its own.
  void waitsLongerWhereOnlyPeersComplain() {
    Story story(4);
    story.says(0, peerFailed());
    story.pass(1900ms);
    QVERIFY(!story.watch.isSettled(story.now));
    story.says(2, peerFailed());
    story.says(3, peerFailed());
    QVERIFY(!story.watch.isSettled(story.now));
    story.pass(300ms);
    QVERIFY(story.watch.isSettled(story.now));
    QCOMPARE(story.watch.outcome().firstFailure->rank, 1);
    QCOMPARE(story.what(), "did not answer rank 0, which gave up: all_reduce of 64 bytes timed out");
  }

  void givesUpWaitingForASecondComplaint() {
    Story story(4);
    story.says(0, peerFailed());
    story.pass(2200ms);
    QVERIFY(story.watch.isSettled(story.now));
  }

  void aRankThatEndedIsJudgedByAllItSaid() {
    Story story(1);
    story.says(0, RankResult{});
    story.state(0).exited = true;
    story.pass(kPatience * 10);
    QVERIFY(story.watch.outcome().succeeded);
  }

  /// For a rank on another host only its connection is known.
  void aConnectionThatEndsIsAFailureUnlessTheResultIsHere() {
    Story story(2);
    story.state(0).disconnected = true;
    story.says(1, RankResult{});
    story.state(1).disconnected = true;
    story.pass(100ms, 0);
    QCOMPARE(story.watch.outcome().firstFailure->rank, 0);
    QCOMPARE(story.what(), "ended without a result: its connection was closed");
    QCOMPARE(story.watch.outcome().results[1].has_value(), true);
  }

  void anAwaitedRankHasAJoinLimit() {
    RankWatch watch(1, kPatience, 20s);
    const RankWatch::Time start{};
    const ChildState awaited{.awaited = true};
    watch.start(0, start);
    watch.judge(0, awaited, start + 20s, start + 20s);
    QVERIFY(watch.outcome().succeeded);
    watch.judge(0, awaited, start + 21s, start + 21s);
    QCOMPARE(QString::fromStdString(watch.outcome().firstFailure->what), "has not connected within 20 s");
  }

  /// A heartbeat contains the rank's time in collectives. A rank that others wait for spends little there.
  void aRankThatAllOthersWaitForIsSlow() {
    Story story(3);
    const auto pass = [&](std::chrono::milliseconds time, std::vector<int> waiting) {
      QStringList told;
      for (auto left = time; left > 0ms; left -= 150ms) {
        story.now += 150ms;
        for (int rank = 0; rank < 3; ++rank) {
          if (std::ranges::count(waiting, rank) > 0) story.waited[static_cast<std::size_t>(rank)] += 144ms;
          story.says(rank, Heartbeat{std::chrono::microseconds(story.waited[static_cast<std::size_t>(rank)]).count()});
        }
        if (const auto notice = story.watch.slowness(story.now))
          told << QStringLiteral("%1: %2").arg(notice->rank).arg(QString::fromStdString(notice->text));
      }
      return told;
    };
    for (const int rank : {0, 1}) story.says(rank, PhaseChange{Phase::Running, 0, 0});
    QCOMPARE(pass(2s, {0, 2}), QStringList());  // one rank has not started yet
    story.says(2, PhaseChange{Phase::Running, 0, 0});
    QCOMPARE(pass(2s, {}), QStringList());         // all ranks compute
    QCOMPARE(pass(2s, {0, 1, 2}), QStringList());  // all ranks wait for the network
    QCOMPARE(pass(2s, {0}), QStringList());        // one rank is done early
    const QStringList told = pass(2s, {0, 2});
    QCOMPARE(told.size(), 1);
    QCOMPARE(told.front(),
             "1: Rank 1 keeps the others waiting: each of them was in collectives for 72 % of the last 0.5 s, this "
             "rank for 0 %.");
    QCOMPARE(pass(12s, {0, 2}).size(), 2);  // at growing intervals
    story.says(1, RankResult{});
    QCOMPARE(pass(60s, {0, 2}), QStringList());  // it has finished
  }

  /// A silent rank is not slow.
  void aSilentRankIsNotSlow() {
    Story story(2);
    for (const int rank : {0, 1}) story.says(rank, PhaseChange{Phase::Running, 0, 0});
    for (int beat = 0; beat < 40; ++beat) {
      story.now += 150ms;
      story.says(0, Heartbeat{beat * 150'000});
      if (beat < 2) story.says(1, Heartbeat{});
      QVERIFY(!story.watch.slowness(story.now));
    }
  }

  void ranksOfAHostThatFallSilentTogether_data() {
    QTest::addColumn<int>("speaking");  // number of ranks of the host that go on
    QTest::addColumn<QString>("what");
    QTest::newRow("all of it")
        << 0 << "sent nothing for 10 s, and neither did ranks 2 and 3: 10.0.0.2 or its network is down";
    QTest::newRow("one of it")
        << 2 << "sent nothing for 10 s while others on 10.0.0.2 did: it was stopped, or its host is overloaded";
  }
  void ranksOfAHostThatFallSilentTogether() {
    QFETCH(int, speaking);
    QFETCH(QString, what);
    Story story(4);
    for (int rank = 0; rank < 4; ++rank) story.watch.start(rank, story.now, rank == 0 ? "10.0.0.1" : "10.0.0.2");
    for (int tenth = 0; tenth < 106; ++tenth) {
      story.now += 100ms;
      story.says(0, Heartbeat{});
      for (int rank = 4 - speaking; rank < 4; ++rank) story.says(rank, Heartbeat{});
      for (int rank = 0; rank < 4; ++rank) story.watch.judge(rank, {}, story.now, story.now);
    }
    QVERIFY(story.watch.isSettled(story.now));
    QCOMPARE(story.watch.outcome().firstFailure->rank, 1);
    QCOMPARE(story.what(), what);
  }

  void aRankOfAHostOfItsOwnMayBeStoppedOrOutOfReach() {
    Story story(2);
    story.watch.start(1, story.now, "10.0.0.2");
    story.pass(10'100ms, 1);
    QCOMPARE(story.what(), "sent nothing for 10 s: it was stopped, or 10.0.0.2 or its network is down");
  }

  void aRankThatTheKernelEndedIsNamedWithItsMemory() {
    Story story(2);
    story.says(1, MemorySample{.weights = 40 << 20, .activations = 12 << 20, .rss = 58 << 20});
    story.state(1) = {.exited = true, .signal = 9, .outOfMemoryReason = "its group may have 60 MiB"};
    story.pass(100ms);
    QVERIFY(story.watch.outcome().firstFailure->isOutOfMemory);
    QCOMPARE(story.watch.outcome().firstFailure->code, ErrorCode::Environment);
    QCOMPARE(story.what(),
             "was killed by the kernel for lack of memory (signal 9): its group may have 60 MiB, and its last report "
             "was 58 MiB, 40 MiB of parameters and 12 MiB of activations");
  }

  void keepsTheLastLinesAndWhatTheySayOfTheMachine() {
    Story story(1);
    for (int i = 0; i < 20; ++i) story.watch.addErrorLine(0, fmt::format("line {}", i));
    story.watch.addErrorLine(0, "what():  std::bad_alloc");
    story.state(0) = {.exited = true, .code = 0, .signal = 6};
    story.pass(100ms);
    const RankExit failure = *story.watch.outcome().firstFailure;
    QCOMPARE(failure.code, ErrorCode::Environment);
    const QString words = QString::fromStdString(failure.lastMessage);
    QVERIFY2(words.startsWith("line 9\n") && words.contains("\nThe cause: there is no memory left: "),
             qPrintable(words));
  }
};

QTEST_APPLESS_MAIN(TestRankWatch)
#include "tst_rank_watch.moc"
