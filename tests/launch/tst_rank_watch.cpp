/// When a rank counts as failed and when a run ends for it, told in made-up times: no process, no waiting.
#include "launch/rank_watch.h"

#include <QTest>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;
using namespace std::chrono_literals;

namespace {

constexpr auto kSilence = 10s;

/// Ranks that run, unless said otherwise, and a time that only passes when told to.
struct Story {
  explicit Story(int ranks) : watch(ranks, kSilence), states(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      watch.start(rank, now);
      says(rank, Hello{kProtocolVersion, rank, 100 + rank, "cpu"});
    }
  }
  void says(int rank, const Message& message) {
    watch.hear(rank, message);
    watch.heard(rank, now);
  }
  /// Time passes; all ranks but the silent one send their heartbeats.
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
  RankWatch watch;
  std::vector<ChildState> states;
};

RankError peerFailed() { return {"all_reduce of 64 bytes timed out.", true, ErrorCode::RankFailed}; }

}  // namespace

class TestRankWatch : public QObject {
  Q_OBJECT
 private slots:
  void aRankMayBeSilentForSoLongAndNoLonger() {
    Story story(2);
    story.pass(kSilence, /*silent=*/1);
    QVERIFY(story.watch.outcome().succeeded);
    story.pass(100ms, 1);
    QVERIFY(!story.watch.outcome().succeeded);
    QCOMPARE(story.watch.outcome().firstFailure->rank, 1);
    QCOMPARE(story.what(), "sent nothing for 10 s");
  }

  void aRankThatHasNotSpokenYetIsStillLoadingItsLibraries() {
    RankWatch watch(1, kSilence);
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

  /// The kernel may tell of a death after a peer complained of it.
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

  /// Where only peers complain, the run goes on until one rank is left that all of them waited for.
  void waitsLongerWhereOnlyPeersComplain() {
    Story story(4);
    story.says(0, peerFailed());
    story.pass(1900ms);
    QVERIFY(!story.watch.isSettled(story.now));
    story.says(2, peerFailed());
    story.says(3, peerFailed());
    story.pass(100ms);
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
    story.pass(kSilence * 10);
    QVERIFY(story.watch.outcome().succeeded);
  }

  /// Of a rank on another host nothing is known but its connection.
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

  void aRankThatIsAwaitedHasATimeToCome() {
    RankWatch watch(1, kSilence, 20s);
    const RankWatch::Time start{};
    const ChildState awaited{.awaited = true};
    watch.start(0, start);
    watch.judge(0, awaited, start + 20s, start + 20s);
    QVERIFY(watch.outcome().succeeded);
    watch.judge(0, awaited, start + 21s, start + 21s);
    QCOMPARE(QString::fromStdString(watch.outcome().firstFailure->what), "has not come within 20 s");
  }

  void keepsTheLastLinesAndWhatTheySayOfTheMachine() {
    Story story(1);
    for (int i = 0; i < 20; ++i) story.watch.hearLine(0, fmt::format("line {}", i));
    story.watch.hearLine(0, "what():  std::bad_alloc");
    story.state(0) = {.exited = true, .code = 0, .signal = 6};
    story.pass(100ms);
    const RankExit failure = *story.watch.outcome().firstFailure;
    QCOMPARE(failure.code, ErrorCode::Environment);
    const QString words = QString::fromStdString(failure.lastWords);
    QVERIFY2(words.startsWith("line 9\n") && words.contains("\nThat is, there is no memory left: "), qPrintable(words));
  }
};

QTEST_APPLESS_MAIN(TestRankWatch)
#include "tst_rank_watch.moc"
