/// Real ranks that fail at arbitrary moments: killed, stopped, out of memory, with an invalid shard, with a port in
/// use, slow. Each failure is detected in time, named correctly, and leaves no process running. Times are counted in
/// rounds of heartbeats or compared with the time of a start, and limits for silence are long, so that a busy machine
/// fails no test.
#include "base/machine_memory.h"
#include "formats/safetensors.h"
#include "launch/listener.h"
#include "tests/launch/odd_ranks.h"
#include "tests/support/machines.h"
#include "tests/support/safetensors_edit.h"
#include "tests/support/seeds.h"

#include <QDir>
#include <QElapsedTimer>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <set>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRanks = 4;

constexpr int roundsIn(milliseconds time) { return static_cast<int>(time / protocol::kHeartbeatPeriod); }
// The launcher asks the kernel each time before it reads a rank, so it sees the end of a process at its next turn.
constexpr int kEndSeenWithin = 2;
// A process may be stopped for a second. The limit for silence is longer than any test.
constexpr int kStopSeenWithin = roundsIn(2s), kSlowSeenWithin = roundsIn(4s), kGoneWithin = roundsIn(5s);

/// Rounds of heartbeats at the launcher: a round begins with a rank that already sent one in the current round.
/// Heartbeats that are read together count once, so a busy machine makes no more rounds.
class BeatRounds {
 public:
  void add(const launch::RankEvent& event) {
    if (!event.message || !std::holds_alternative<protocol::Heartbeat>(*event.message)) return;
    if (event.rank == std::exchange(m_last, event.rank) || m_heard.insert(event.rank).second) return;
    m_begun.push_back(Clock::now());
    m_heard = {event.rank};
  }
  int between(Clock::time_point start, Clock::time_point end) const {
    return static_cast<int>(std::ranges::count_if(m_begun, [&](auto at) { return start < at && at <= end; }));
  }

 private:
  std::vector<Clock::time_point> m_begun;
  std::set<int> m_heard;
  int m_last = -1;
};

/// Rounds of heartbeats in which a rank was slow: it hardly waited in collectives, and each other rank did so for most
/// of the time. Other programs on the peers' core make them wait less, and then the rank is not slow.
class SlowRounds {
 public:
  explicit SlowRounds(int slow) : m_slow(slow) {}
  void add(const launch::RankEvent& event) {
    const auto* beat = event.message ? std::get_if<protocol::Heartbeat>(&*event.message) : nullptr;
    if (!beat) return;
    Waiting& rank = m_ranks[static_cast<std::size_t>(event.rank)];
    const auto now = Clock::now();
    if (now - rank.at < protocol::kHeartbeatPeriod / 2) return;  // read together with the one before
    const std::chrono::microseconds waited(beat->waitedUs);
    rank = {now, waited, std::chrono::duration<double>(waited - rank.waited) / (now - rank.at)};
    if (event.rank == (m_slow + 1) % kRanks) m_count += isSlow();
  }
  int count() const { return m_count; }

 private:
  struct Waiting {
    Clock::time_point at{};
    std::chrono::microseconds waited{};
    double share = 0;  ///< between the last two heartbeats
  };
  bool isSlow() const {
    for (int rank = 0; rank < kRanks; ++rank) {
      const double share = m_ranks[static_cast<std::size_t>(rank)].share;
      if (rank == m_slow ? share > 0.25 : share < 0.6) return false;
    }
    return true;
  }

  std::array<Waiting, kRanks> m_ranks{};
  int m_slow, m_count = 0;
};

/// The outcome, and the rounds of heartbeats since the fault.
struct Ended {
  QString words;
  int seen = 0, gone = 0;
};

/// Waits until the kernel reports that a child process has ended; 0: any child. Leaves the report to the launcher, and
/// returns if the launcher has read it.
void waitForEnd(pid_t process = 0) {
  siginfo_t info{};
  const auto which = process == 0 ? P_ALL : P_PID;
  while (::waitid(which, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
}

/// Pins all threads of a process, or with 0 this thread, to one core.
void pinTo(pid_t process, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (process == 0) return void(::sched_setaffinity(0, sizeof cores, &cores));
  for (const QString& thread : QDir(QStringLiteral("/proc/%1/task").arg(process)).entryList(QDir::Dirs))
    if (const int id = thread.toInt()) ::sched_setaffinity(id, sizeof cores, &cores);
}

/// Keeps the worst of many failures and compares it with the limits.
class Worst {
 public:
  void add(const Ended& ended) {
    m_seen = std::max(m_seen, ended.seen);
    m_gone = std::max(m_gone, ended.gone);
    ++m_failures;
  }
  void hold(int seenWithin) const {
    qInfo("%d failures: seen after at most %d rounds of heartbeats, all gone after at most %d", m_failures, m_seen,
          m_gone);
    QVERIFY(m_seen <= seenWithin);
    QVERIFY(m_gone <= kGoneWithin);
  }

 private:
  int m_failures = 0, m_seen = 0, m_gone = 0;
};

/// A separate control group with this memory limit, of either version.
class MemoryGroupFolder {
 public:
  explicit MemoryGroupFolder(const QString& name) {
    const bool isFirst = QFile::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    m_path = (isFirst ? "/sys/fs/cgroup/memory/" : "/sys/fs/cgroup/") + name;
    m_limit = isFirst ? "/memory.limit_in_bytes" : "/memory.max";
    m_events = isFirst ? "/memory.oom_control" : "/memory.events";
    if (!QDir().mkdir(m_path))
      whyNot = "no control group can be made in /sys/fs/cgroup";
    else if (!limitTo(1LL << 40))
      whyNot = "a control group of its own has no limit of memory here";
  }
  ~MemoryGroupFolder() { ::rmdir(qPrintable(m_path)); }
  /// Removes a group without processes.
  bool limitTo(qint64 bytes) const {
    QFile file(m_path + m_limit);
    return file.open(QIODevice::WriteOnly) && file.write(QByteArray::number(bytes)) > 0 && file.flush();
  }
  /// Number of processes that the kernel has killed in it.
  std::int64_t kills() const { return oomKillsIn({.events = (m_path + m_events).toStdString()}).value_or(0); }
  QString join() const { return "echo $$ > " + m_path + "/cgroup.procs"; }

  QString whyNot;  ///< why there is no group, a sentence

 private:
  QString m_path, m_limit, m_events;
};

}  // namespace

class FailuresTest : public QObject {
  Q_OBJECT
  OddRanks m_ranks;
  QString m_plan, m_largePlan;  ///< number of training steps
  std::mt19937_64 m_random;

  int below(int end) { return static_cast<int>(m_random() % static_cast<std::uint64_t>(end)); }

  /// Trains longer than any test waits.
  launch::LaunchRequest endless(const QString& preparation = {}, int odd = 0) const {
    launch::LaunchRequest request = m_ranks.request(m_plan, kRanks, odd, preparation);
    request.rankArguments = {"--skip-weights", "--train-steps", "100000"};
    return request;
  }

  /// Needs more than 250 MiB per rank.
  launch::LaunchRequest tooLarge(const QString& preparation, int odd) const {
    launch::LaunchRequest request = m_ranks.request(m_largePlan, kRanks, odd, preparation);
    request.rankArguments = {"--skip-weights", "--train-steps", "3"};
    return request;
  }

  using Harm = std::function<void(pid_t, const std::stop_token&)>;
  static Harm signalled(int signal, milliseconds delay) {
    return [=](pid_t process, const std::stop_token& stop) {
      std::this_thread::sleep_for(delay);
      if (stop.stop_requested()) return;
      ::kill(process, signal);
      if (signal == SIGKILL) waitForEnd(process);
    };
  }

  /// Runs to the end. The fault has happened when `harm` returns, which starts as soon as the rank has a process.
  Ended harmed(const launch::LaunchRequest& request, int victim, const Harm& harm) const {
    std::atomic<Clock::time_point> harmedAt = Clock::time_point{};
    std::jthread harming([&](const std::stop_token& stop) {
      pid_t process = 0;
      while (process == 0 && !stop.stop_requested()) {
        std::this_thread::sleep_for(1ms);
        process = processOf(victim);
      }
      harm(process, stop);
      harmedAt = Clock::now();
    });
    BeatRounds beats;
    const auto outcome = launch::launch(request, [&](const launch::RankEvent& event) { beats.add(event); });
    const auto end = Clock::now();
    harming.request_stop();
    harming.join();
    Ended ended{inWords(outcome)};
    if (outcome && outcome->firstFailure) ended.seen = beats.between(harmedAt, outcome->firstFailure->seen);
    ended.gone = beats.between(harmedAt, end);
    return ended;
  }

  /// Process of the rank; 0: not started yet.
  pid_t processOf(int rank) const {
    for (const qint64 pid : ranksBelow(m_ranks.path(""))) {
      const QByteArray own = "RANK=" + QByteArray::number(rank);
      QFile environment(QStringLiteral("/proc/%1/environ").arg(pid));
      if (environment.open(QIODevice::ReadOnly) && environment.readAll().split('\0').contains(own))
        return static_cast<pid_t>(pid);
    }
    return 0;
  }

  void leavesNobody() const { QVERIFY(ranksBelow(m_ranks.path("")).empty()); }

 private slots:
  void initTestCase() {
    m_random.seed(seed());
    m_plan =
        m_ranks.makePlan("plan.json", {QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks",
                                       QString::number(kRanks), "--seq", "16", "--train", "--engine", "reference"});
    m_largePlan = m_ranks.makePlan("large.json", {makeBigModel(m_ranks.path("")), "--ranks", QString::number(kRanks),
                                                  "--seq", "64", "--train", "--engine", "reference"});
  }
  void cleanup() { leavesNobody(); }

  /// At any moment: in the forward, in the backward, in a collective, in the optimizer.
  void aRankThatIsSignalledIsNamed_data() {
    QTest::addColumn<int>("signal");
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("seenWithin");
    QTest::newRow("killed") << SIGKILL << "was killed by signal 9" << kEndSeenWithin;
    QTest::newRow("stopped") << SIGSTOP << "was stopped by signal 19" << kStopSeenWithin;
  }
  void aRankThatIsSignalledIsNamed() {
    QFETCH(int, signal);
    QFETCH(QString, what);
    QFETCH(int, seenWithin);
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const int victim = below(kRanks);
      const Ended ended = harmed(endless(), victim, signalled(signal, milliseconds(below(3000))));
      QVERIFY2(ended.words.startsWith(QStringLiteral("rank %1, code 5: %2").arg(victim).arg(what)),
               qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(seenWithin);
  }

  /// The kernel kills the rank, and only its counters show it.
  void aRankWithoutMemoryIsNamedWithItsLimit() {
    const MemoryGroupFolder group(QStringLiteral("cleave-test-%1").arg(::getpid()));
    if (!group.whyNot.isEmpty()) QSKIP(qPrintable(group.whyNot));
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const int victim = below(kRanks);
      QVERIFY(group.limitTo(std::int64_t{60 + below(200)} << 20));  // from too little for the start to too little for
                                                                    // the computation
      const std::int64_t before = group.kills();
      const Harm harm = [&](pid_t process, const std::stop_token& stop) {
        while (group.kills() == before && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
        if (process != 0) waitForEnd(process);
      };
      const Ended ended = harmed(tooLarge(group.join(), victim), victim, harm);
      const QString expected = QStringLiteral(
                                   "rank %1, code 4: was killed by the kernel for lack of memory (signal 9): its "
                                   "control group is limited to ")
                                   .arg(victim);
      QVERIFY2(ended.words.startsWith(expected), qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kEndSeenWithin);
  }

  void anInvalidShardIsNamed() {
    Worst worst;
    const QString source = QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), folder = m_ranks.path("damaged");
    QDir(folder).mkpath(".");
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const int victim = below(kRanks);
      for (const QString& file : QDir(source).entryList(QDir::Files)) {
        QByteArray bytes = readBytes(source + "/" + file);
        if (file.endsWith(".safetensors")) bytes.truncate(below(static_cast<int>(bytes.size())));
        writeBytes(folder + "/" + file, bytes);
      }
      QByteArray plan = readBytes(m_plan);
      const QByteArray from = "\"source\":\"" + source.toUtf8() + "\"";
      QVERIFY(plan.contains(from));
      plan.replace(from, "\"source\":\"" + folder.toUtf8() + "\"");
      writeBytes(m_ranks.path("damaged.json"), plan);
      launch::LaunchRequest request = endless("plan=" + m_ranks.path("damaged.json"), victim);
      request.rankArguments = {"--train-steps", "100000"};
      const Ended ended = harmed(request, victim, [](pid_t process, const std::stop_token&) {
        if (process != 0) waitForEnd(process);
      });
      QVERIFY2(ended.words.startsWith(QStringLiteral("rank %1, code 3: ").arg(victim)), qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kEndSeenWithin);
  }

  /// A large weight is mapped from its file, so truncating the file removes it from a running computation.
  void aFileThatIsCutOffMeanwhileIsNamed() {
    Worst worst;
    const QString folder = m_ranks.path("mapped");
    QDir().mkpath(folder);
    writeBytes(folder + "/config.json",
               R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "head_dim": 16,
                   "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
                   "vocab_size": 65536, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
                   "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "float32"})");
    const std::vector<float> table(65536 * 64, 0.5F);
    const auto bytes = std::as_bytes(std::span(table));
    const graph::TensorType type{graph::DType::Float32, {65536, 64}};
    const fs::path file = (folder + "/model.safetensors").toStdString();
    const QString plan = m_ranks.path("mapped.json");
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      QVERIFY(
          formats::writeSafetensors(file, std::vector<formats::TensorView>{{"model.embed_tokens.weight", type, bytes},
                                                                           {"lm_head.weight", type, bytes}}));
      if (round == 0) m_ranks.makePlan("mapped.json", {folder, "--ranks", QString::number(kRanks), "--seq", "64"});
      launch::LaunchRequest request = m_ranks.request(plan, kRanks, 0, {});
      request.rankArguments = {"--init-missing", "--passes", "1000000"};
      std::atomic<bool> isRunning = false;
      std::atomic<Clock::time_point> diedAt = Clock::time_point{};
      std::jthread cutting([&, delay = milliseconds(below(1000))](const std::stop_token& stop) {
        while (!isRunning && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(delay);
        fs::resize_file(file, 4096);
        waitForEnd();
        diedAt = Clock::now();
      });
      BeatRounds beats;
      const auto outcome = launch::launch(request, [&](const launch::RankEvent& event) {
        beats.add(event);
        const auto* phase = event.message ? std::get_if<protocol::PhaseChange>(&*event.message) : nullptr;
        if (phase && phase->phase == protocol::Phase::Running) isRunning = true;
      });
      const auto end = Clock::now();
      cutting.request_stop();
      cutting.join();
      const QString words = inWords(outcome);
      QVERIFY2(words.contains("code 5: was killed by signal 7 (Bus error): " + QString::fromStdString(file.string()) +
                              " was truncated, rewritten or became unreadable"),
               qPrintable(words));
      worst.add({words, beats.between(diedAt, outcome->firstFailure->seen), beats.between(diedAt, end)});
      leavesNobody();
    }
    worst.hold(kEndSeenWithin);
  }

  /// Ranks of torchrun or Slurm, whose port is not held by a socket. Their limit for connecting is longer than the test
  /// waits.
  void aPortThatIsTakenIsNamed() {
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const QString plan = makeSplitPlan(m_ranks.path("apart.json"), QStringLiteral(CLEAVE_TEST_DATA "/models/llama"),
                                         2, {"--seq", "16"});
      ListenedRun run(plan, 2, {"--no-check"});
      auto meeting = launch::Listener::open({"127.0.0.1", run.meeting()});  // never answers a connection
      QVERIFY(meeting);
      for (const int rank : {1, 0}) run.startRank(rank, {"--connect-timeout", "600"});
      QCOMPARE(run.listener->exitCode(), exitCode(ErrorCode::Environment));
      for (const auto& rank : run.ranks) QVERIFY(rank->exitCode() > 0);
      QCOMPARE(run.ranks.back()->exitCode(), exitCode(ErrorCode::Environment));
      const QString said = run.listener->err();
      QVERIFY2(said.contains(QStringLiteral("Rank 0 ")) &&
                   said.contains(QStringLiteral("port %1 on 127.0.0.1 is in use").arg(run.meeting())),
               qPrintable(said));
      leavesNobody();
    }
  }

  /// The rank is slowed by another program on its core. That is reported, and the run goes on.
  void aSlowRankIsNamedAndStays() {
    if (std::thread::hardware_concurrency() < 2) QSKIP("one core is all that this machine has");
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const int victim = below(kRanks);
      std::atomic<bool> isTraining = false;
      std::atomic<Clock::time_point> slowSince = Clock::time_point{};
      std::jthread slowing([&, delay = milliseconds(below(1000))](const std::stop_token& stop) {
        while (!isTraining && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(delay);
        for (int rank = 0; rank < kRanks; ++rank) pinTo(processOf(rank), rank == victim ? 0 : 1);
        slowSince = Clock::now();
        std::vector<std::jthread> rivals;  // for the slow rank's core
        for (int i = 0; i < 16; ++i) {
          rivals.emplace_back([](const std::stop_token& over) {
            pinTo(0, 0);
            while (!over.stop_requested()) continue;
          });
        }
        while (!stop.stop_requested()) std::this_thread::sleep_for(5ms);
      });
      std::stop_source stop;
      SlowRounds slowRounds(victim);
      Ended ended{};
      int named = -1;
      launch::LaunchRequest request = tooLarge({}, victim);  // it computes rather than waits
      request.rankArguments.back() = "100000";
      const auto outcome = launch::launch(
          request,
          [&](const launch::RankEvent& event) {
            slowRounds.add(event);
            if (event.message && std::holds_alternative<protocol::TrainingStep>(*event.message)) isTraining = true;
            if (event.notice.empty() || slowSince.load() == Clock::time_point{} || named >= 0) return;
            named = event.rank;
            ended.words = QString::fromStdString(event.notice);
            ended.seen = slowRounds.count();
            stop.request_stop();
          },
          Progress(stop.get_token()));
      slowing.request_stop();
      slowing.join();
      QVERIFY(!outcome);
      QVERIFY2(outcome.error().code == ErrorCode::Cancelled, outcome.error().message.c_str());
      QVERIFY2(named == victim, qPrintable(ended.words));
      QVERIFY2(ended.words.startsWith(QStringLiteral("Rank %1 keeps the others waiting: ").arg(victim)),
               qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kSlowSeenWithin);
  }

  /// The ranks end sooner than they started.
  void aKilledLauncherLeavesNobody() {
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const QString temporary = m_ranks.path(QStringLiteral("launcher-%1").arg(round));
      QDir().mkpath(temporary);
      QElapsedTimer timer;
      timer.start();
      Program launcher({CLEAVE_BIN_DIR "/cleave-cli", "run", CLEAVE_TEST_DATA "/models/llama", "--ranks", "2", "--seq",
                        "16", "--backend", "gloo", "--no-check", "--train-steps", "100000"},
                       {{"TMPDIR", temporary}});
      QVERIFY(waitUntil([&] { return ranksBelow(temporary).size() == 2; }));
      const qint64 startMs = timer.elapsed();
      std::this_thread::sleep_for(milliseconds(below(2000)));
      ::kill(static_cast<pid_t>(launcher.pid()), SIGKILL);
      timer.restart();
      QVERIFY(waitUntil([&] { return ranksBelow(temporary).empty(); }));
      const qint64 endMs = timer.elapsed();
      qInfo("started within %lld ms, gone within %lld ms", startMs, endMs);
      QVERIFY(endMs <= startMs);
      QCOMPARE(launcher.exitCode(), -1);  // killed while working, not after
    }
  }
};

QTEST_GUILESS_MAIN(FailuresTest)
#include "tst_failures.moc"
