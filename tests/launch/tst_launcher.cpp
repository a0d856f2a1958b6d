/// The launcher with small shell programs in place of ranks: correct, faulty or hanging. tst_rank_processes.cpp
/// launches real ranks; tst_rank_watch.cpp tests deadlines.
#include "launch/launcher.h"
#include "tests/support/patience.h"
#include "tests/support/rows.h"

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <signal.h>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;
using namespace std::chrono_literals;

namespace {

// moc miscounts quotes and braces in raw strings, so these are plain strings.
const QString kHello =
    QStringLiteral(
        "printf '{\"type\":\"hello\",\"version\":%1,\"rank\":%d,\"pid\":%d,\"device\":\"cpu\"}\\n' $RANK $$ >&3")
        .arg(kProtocolVersion);
const char* const kResult = R"(echo '{"type":"result","loss":1.5,"has_loss":true}' >&3)";

bool isAlive(qint64 pid) {
  QFile stat(QString("/proc/%1/stat").arg(pid));
  if (!stat.open(QIODevice::ReadOnly)) return false;
  const QByteArray text = stat.readAll();
  return text.mid(text.lastIndexOf(')') + 2, 1) != "Z";
}

struct Recorded {
  std::vector<RankEvent> events;
  std::vector<qint64> pids;
  Observer observer() {
    return [this](const RankEvent& event) {
      events.push_back(event);
      if (event.message) {
        if (const auto* hello = std::get_if<Hello>(&*event.message)) pids.push_back(hello->pid);
      }
    };
  }
};

}  // namespace

class LauncherTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

  LaunchRequest request(const QString& script, int ranks = 2) {
    const QString file = m_folder.filePath(QString("rank-%1.sh").arg(qHash(script)));
    QFile out(file);
    if (!out.open(QIODevice::WriteOnly)) qFatal("cannot write the script");
    out.write(("#!/bin/sh\n" + script + "\n").toUtf8());
    out.close();
    out.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    LaunchRequest result;
    result.rankProgram = file.toStdString();
    result.planFile = "plan.json";
    result.ranks = ranks;
    result.backend = Backend::Gloo;
    return result;
  }

  /// Launches and checks that no process is left.
  RunOutcome launchAndCheckNothingIsLeft(const LaunchRequest& request, Recorded& recorded) {
    auto outcome = launch::launch(request, recorded.observer());
    for (qint64 pid : recorded.pids) [&] { QVERIFY(!isAlive(pid)); }();
    if (!outcome) qFatal("%s", outcome.error().message.c_str());
    return *outcome;
  }

 private slots:
  void collectsResultsOfAllRanks() {
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(request(kHello + "\n" + kResult, 4), recorded);
    QVERIFY(outcome.succeeded);
    QVERIFY(!outcome.firstFailure);
    QCOMPARE(outcome.results.size(), std::size_t(4));
    for (const auto& result : outcome.results) QCOMPARE(result->loss, 1.5);
    QCOMPARE(recorded.pids.size(), std::size_t(4));
  }

  void givesRanksTheirEnvironmentAndNoSecrets() {
    qputenv("HF_TOKEN", "hf_secret");
    qputenv("MY_API_KEY", "secret");
    qputenv("RANK", "77");
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(request(kHello +
                                                             R"(
echo "rank $RANK local $LOCAL_RANK of $WORLD_SIZE at $MASTER_ADDR token<$HF_TOKEN$MY_API_KEY> )"
                                                             R"(threads $OMP_NUM_THREADS" >&2
[ "$MASTER_PORT" -gt 1023 ] || echo "bad port" >&2
ls /proc/self/fd | tr '\n' ' ' >&2
)" + kResult),
                                                     recorded);
    qunsetenv("HF_TOKEN");
    qunsetenv("MY_API_KEY");
    qunsetenv("RANK");
    QVERIFY(outcome.succeeded);
    QStringList lines[2];
    for (const auto& event : recorded.events) {
      if (!event.line.empty()) lines[event.rank] << QString::fromStdString(event.line);
    }
    for (int rank : {0, 1}) {
      QVERIFY2(
          lines[rank].value(0).startsWith(QString("rank %1 local %1 of 2 at 127.0.0.1 token<> threads ").arg(rank)),
          qPrintable(lines[rank].join('|')));
      // Input, output, error, events, control, and for rank 0 the socket; `ls` itself opens one more.
      QCOMPARE(lines[rank].value(1).split(' ', Qt::SkipEmptyParts).size(), rank == 0 ? 7 : 6);
    }
  }

  void namesTheFirstFailureWithItsLastWords_data() {
    const test::Rows<QString, QString, QString> row("rank1", "what", "words");
    row("exit code", "echo 'disk on fire' >&2; exit 3", "ended with code 3", "disk on fire");
    row("signal", "kill -9 $$", "killed by signal 9", "");
    row("no memory before main()", "echo 'what():  std::bad_alloc' >&2; kill -6 $$", "killed by signal 6",
        "\nThe cause: there is no memory left: ");
    row("own error", R"(echo '{"type":"error","message":"no such tensor"}' >&3; exit 3)", "code 3", "no such tensor");
    row("error, then hangs", R"(echo '{"type":"error","message":"stuck"}' >&3; sleep 60)", "reported an error",
        "stuck");
    row("no result", "exit 0", "without a result", "");
    row("stopped", "kill -STOP $$", "stopped by signal", "");
    row("no protocol", "echo 'hello?' >&3; sleep 60", "broke the protocol", "not valid JSON");
    row("ignores SIGTERM", "trap '' TERM; (trap '' TERM; sleep 60) & echo x >&2; exit 7", "ended with code 7", "x");
  }
  void namesTheFirstFailureWithItsLastWords() {
    QFETCH(QString, rank1);
    QFETCH(QString, what);
    QFETCH(QString, words);
    Recorded recorded;
    const QString script =
        kHello + "\nif [ $RANK = 1 ]; then\n" + rank1 + "\nfi\ntrap '' TERM\nwhile read line <&4; do :; done\nsleep 60";
    const auto outcome = launchAndCheckNothingIsLeft(request(script, 3), recorded);
    QVERIFY(!outcome.succeeded);
    QCOMPARE(outcome.firstFailure->rank, 1);
    QVERIFY2(QString::fromStdString(outcome.firstFailure->what).contains(what), outcome.firstFailure->what.c_str());
    QVERIFY2(QString::fromStdString(outcome.firstFailure->lastMessage).contains(words),
             outcome.firstFailure->lastMessage.c_str());
  }

  void blamesTheDeadRankRatherThanThePeerThatNoticed() {
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(request(kHello + R"(
if [ $RANK = 0 ]; then echo '{"type":"error","message":"connection closed","peer_failed":true}' >&3; exit 5; fi
sleep 0.1; kill -9 $$)"),
                                                     recorded);
    QCOMPARE(outcome.firstFailure->rank, 1);
  }

  /// The observer's time is the time of the thread that reads standard error.
  void aRankThatEndedIsJudgedByAllItSaid() {
    Recorded recorded;
    const auto observer = [&, inner = recorded.observer()](const RankEvent& event) {
      inner(event);
      const auto* hello = event.message ? std::get_if<Hello>(&*event.message) : nullptr;
      if (hello && !QTest::qWaitFor([&] { return !isAlive(hello->pid); }, cleave::test::kPatience))
        qFatal("the rank does not end");
    };
    // The pause separates the greeting from the result: the observer handles the first while the second is written.
    const auto outcome = launch::launch(request(kHello + "\nsleep 0.2\n" + kResult, 2), observer);
    QVERIFY(outcome);
    QVERIFY2(outcome->succeeded, outcome->firstFailure ? outcome->firstFailure->what.c_str() : "");
    for (const auto& result : outcome->results) QCOMPARE(result->loss, 1.5);
  }

  void theObserversTimeCountsAgainstNobody() {
    LaunchRequest chatty = request(
        kHello + "\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1; echo '{\"type\":\"heartbeat\"}' >&3; done\n" +
        kResult);
    chatty.silence = 500ms;
    bool hasSlept = false;
    const auto outcome = launch::launch(chatty, [&](const RankEvent& event) {
      if (hasSlept || event.rank != 1 || !event.message || !std::holds_alternative<Hello>(*event.message)) return;
      hasSlept = true;
      QTest::qSleep(1000);
    });
    QVERIFY(outcome && hasSlept);
    QVERIFY2(outcome->succeeded, outcome->firstFailure ? outcome->firstFailure->what.c_str() : "");
  }

  /// The observer blocks on one rank's lines. The other rank has sent its result and only writes to its standard error.
  void theObserversTimeOnOneRankCountsAgainstNoOther() {
    LaunchRequest chatty =
        request(kHello + "\n" + kResult + "\nfor i in $(seq 40); do sleep 0.1; echo \"line $i\" >&2; done");
    chatty.silence = 1500ms;
    bool hasSlept = false;
    const auto outcome = launch::launch(chatty, [&](const RankEvent& event) {
      if (hasSlept || event.rank != 0 || event.line != "line 3") return;
      hasSlept = true;
      QTest::qSleep(2500);
    });
    QVERIFY(outcome && hasSlept);
    QVERIFY2(outcome->succeeded, outcome->firstFailure ? outcome->firstFailure->what.c_str() : "");
  }

  /// A hanging rank is alive, but the other ranks fail because of it.
  void blamesTheRankThatAllOthersWaitedFor() {
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(request(kHello + R"(
if [ $RANK = 1 ]; then while sleep 0.1; do echo '{"type":"heartbeat"}' >&3; done; fi
sleep 0.$RANK
echo '{"type":"error","message":"all_reduce of 64 bytes timed out.","peer_failed":true,"code":5}' >&3
exit 5)",
                                                             4),
                                                     recorded);
    QVERIFY(!outcome.succeeded);
    QCOMPARE(outcome.firstFailure->rank, 1);
    QCOMPARE(outcome.firstFailure->code, ErrorCode::RankFailed);
    QCOMPARE(QString::fromStdString(outcome.firstFailure->what),
             "did not answer rank 0, which gave up: all_reduce of 64 bytes timed out");
  }

  void theClassOfAFailureTravelsWithIt_data() {
    const test::Rows<QString, int> row("end", "code");
    row("an error's own", R"(echo '{"type":"error","message":"bad file","code":3}' >&3; exit 3)", 3);
    row("before the exit", R"(echo '{"type":"error","message":"disk full","code":4}' >&3; sleep 60)", 4);
    row("by the exit code alone", "exit 4", 4);
    row("of no class", "exit 77", 5);
    row("of no class, with an error", R"(echo '{"type":"error","message":"?","code":77}' >&3; exit 3)", 5);
    row("killed", "kill -9 $$", 5);
    row("a code that ranks do not use", "exit 1", 5);
    row("no memory before main()", "echo 'what():  std::bad_alloc' >&2; kill -6 $$", 4);
    row("no descriptors before main()",
        "echo 'libc10.so: cannot open shared object file: Too many open files' >&2; exit 127", 4);
    row("no result", "exit 0", 5);
  }
  void theClassOfAFailureTravelsWithIt() {
    QFETCH(QString, end);
    QFETCH(int, code);
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(request(kHello + "\n" + end, 1), recorded);
    QVERIFY(!outcome.succeeded);
    QCOMPARE(exitCode(outcome.firstFailure->code), code);
  }

  void noticesSilence() {
    LaunchRequest silent = request(kHello +
                                   "\nif [ $RANK = 1 ]; then sleep 60; fi\n"
                                   "while sleep 0.1; do echo '{\"type\":\"heartbeat\"}' >&3; done");
    silent.silence = 500ms;
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(silent, recorded);
    QCOMPARE(outcome.firstFailure->rank, 1);
    QCOMPARE(QString::fromStdString(outcome.firstFailure->what), "sent nothing for 0.5 s");
  }

  void stopsWhenAsked() {
    std::stop_source stop;
    Recorded recorded;
    const auto observer = [&, inner = recorded.observer()](const RankEvent& event) {
      inner(event);
      if (recorded.pids.size() == 2) stop.request_stop();
    };
    const auto outcome = launch::launch(request(kHello + "\nsleep 60"), observer, Progress(stop.get_token()));
    QVERIFY(!outcome);
    QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
    for (qint64 pid : recorded.pids) QVERIFY(!isAlive(pid));
  }

  void leavesNothingWhenTheObserverThrows() {
    Recorded recorded;
    const auto observer = [&, inner = recorded.observer()](const RankEvent& event) {
      inner(event);
      if (recorded.pids.size() == 2) throw std::runtime_error("observer");
    };
    QVERIFY_EXCEPTION_THROWN((void)launch::launch(request(kHello + "\nsleep 60"), observer), std::runtime_error);
    for (qint64 pid : recorded.pids) QVERIFY(!isAlive(pid));
  }

  void saysThatAProgramCannotBeStarted() {
    LaunchRequest missing = request("exit 0");
    missing.rankProgram = "/nonexistent/cleave-rank";
    const auto outcome = launch::launch(missing, [](const RankEvent&) {});
    QVERIFY(!outcome);
    QCOMPARE(outcome.error().code, ErrorCode::Environment);
    QVERIFY(outcome.error().message.find("/nonexistent/cleave-rank") != std::string::npos);
  }

  void cutsEndlessLines() {
    Recorded recorded;
    const auto outcome = launchAndCheckNothingIsLeft(
        request(
            kHello + "\nhead -c 300000 /dev/zero | tr '\\0' x >&2\nhead -c 300000 /dev/zero | tr '\\0' x >&3\nsleep 5",
            1),
        recorded);
    QVERIFY(!outcome.succeeded);
    for (const auto& event : recorded.events) QVERIFY(event.line.size() < 5000);
  }

  void readsTheNamesOfBackends() {
    QCOMPARE(*parseBackend("nccl"), Backend::Nccl);
    QVERIFY(!parseBackend("mpi"));
  }
};

QTEST_GUILESS_MAIN(LauncherTest)
#include "tst_launcher.moc"
