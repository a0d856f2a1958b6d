/// Real ranks that fail at arbitrary moments: killed, stopped, out of memory, with an invalid shard, with a port in
/// use, slow. Each failure is detected in time, named correctly, and leaves no process running.
#include "base/machine_memory.h"
#include "formats/safetensors.h"
#include "launch/listener.h"
#include "tests/launch/odd_ranks.h"
#include "tests/support/machines.h"
#include "tests/support/safetensors_edit.h"
#include "tests/support/seeds.h"

#include <QDir>

#include <atomic>
#include <random>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRanks = 4;
constexpr milliseconds kSeenWithin = 1s, kSilentSeenWithin = 3s, kGoneWithin = 5s;
constexpr milliseconds kWithStart = 3s;  // detection time, if the fault is there before the programs start

milliseconds since(Clock::time_point start, Clock::time_point end = Clock::now()) {
  return std::chrono::duration_cast<milliseconds>(end - start);
}

/// The outcome, with times counted from the fault.
struct Ended {
  QString words;
  milliseconds seen{}, gone{};
};

/// Pins all threads of a process, or with 0 this thread, to one core.
void pinTo(pid_t process, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (process == 0) return void(::sched_setaffinity(0, sizeof cores, &cores));
  for (const QString& thread : QDir(QStringLiteral("/proc/%1/task").arg(process)).entryList(QDir::Dirs))
    if (const int id = thread.toInt()) ::sched_setaffinity(id, sizeof cores, &cores);
}

/// Keeps the worst of many rounds and compares it with the limits.
class Worst {
 public:
  void add(const Ended& ended) {
    m_seen = std::max(m_seen, ended.seen);
    m_gone = std::max(m_gone, ended.gone);
    ++m_rounds;
  }
  void hold(milliseconds seenWithin, milliseconds goneWithin = kGoneWithin) const {
    qInfo("%d rounds: seen after at most %lld ms, all gone after at most %lld ms", m_rounds,
          static_cast<long long>(m_seen.count()), static_cast<long long>(m_gone.count()));
    const int slack = m_rounds > 2 ? 1 : 4;
    QVERIFY(m_seen <= slack * seenWithin);
    QVERIFY(m_gone <= slack * goneWithin);
  }

 private:
  milliseconds m_seen{}, m_gone{};
  int m_rounds = 0;
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
    request.silence = launch::kSilence;
    request.rankArguments = {"--skip-weights", "--train-steps", "100000"};
    return request;
  }

  /// Needs more than 250 MiB per rank.
  launch::LaunchRequest tooLarge(const QString& preparation, int odd) const {
    launch::LaunchRequest request = m_ranks.request(m_largePlan, kRanks, odd, preparation);
    request.silence = launch::kSilence;
    request.rankArguments = {"--skip-weights", "--train-steps", "3"};
    return request;
  }

  using Harm = std::function<void(pid_t, const std::stop_token&)>;
  static Harm signalled(int signal, milliseconds delay) {
    return [=](pid_t process, const std::stop_token& stop) {
      std::this_thread::sleep_for(delay);
      if (!stop.stop_requested()) ::kill(process, signal);
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
    const auto outcome = launch::launch(request, [](const launch::RankEvent&) {});
    const auto end = Clock::now();
    harming.request_stop();
    harming.join();
    Ended ended{inWords(outcome)};
    if (outcome && outcome->firstFailure) ended.seen = since(harmedAt, outcome->firstFailure->seen);
    ended.gone = since(harmedAt, end);
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
    QTest::addColumn<int>("seenWithinMs");
    QTest::newRow("killed") << SIGKILL << "was killed by signal 9" << static_cast<int>(kSeenWithin.count());
    QTest::newRow("stopped") << SIGSTOP << "was stopped by signal 19" << static_cast<int>(kSilentSeenWithin.count());
  }
  void aRankThatIsSignalledIsNamed() {
    QFETCH(int, signal);
    QFETCH(QString, what);
    QFETCH(int, seenWithinMs);
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const int victim = below(kRanks);
      const Ended ended = harmed(endless(), victim, signalled(signal, milliseconds(below(3000))));
      QVERIFY2(ended.words.startsWith(QStringLiteral("rank %1, code 5: %2").arg(victim).arg(what)),
               qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(milliseconds(seenWithinMs));
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
      const Ended ended = harmed(tooLarge(group.join(), victim), victim, [&](pid_t, const std::stop_token& stop) {
        while (group.kills() == before && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
      });
      const QString expected = QStringLiteral(
                                   "rank %1, code 4: was killed by the kernel for lack of memory (signal 9): its "
                                   "control group is limited to ")
                                   .arg(victim);
      QVERIFY2(ended.words.startsWith(expected), qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kSeenWithin);
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
      const Ended ended = harmed(request, victim, [](pid_t, const std::stop_token&) {});
      QVERIFY2(ended.words.startsWith(QStringLiteral("rank %1, code 3: ").arg(victim)), qPrintable(ended.words));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kWithStart);
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
      request.silence = launch::kSilence;
      request.rankArguments = {"--init-missing", "--passes", "1000000"};
      std::atomic<bool> isRunning = false;
      std::atomic<Clock::time_point> cutAt = Clock::time_point{};
      std::jthread cutting([&, delay = milliseconds(below(1000))](const std::stop_token& stop) {
        while (!isRunning && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(delay);
        fs::resize_file(file, 4096);
        cutAt = Clock::now();
      });
      const auto outcome = launch::launch(request, [&](const launch::RankEvent& event) {
        const auto* phase = event.message ? std::get_if<protocol::PhaseChange>(&*event.message) : nullptr;
        if (phase && phase->phase == protocol::Phase::Running) isRunning = true;
      });
      const QString words = inWords(outcome);
      QVERIFY2(words.contains("code 5: was killed by signal 7 (Bus error): " + QString::fromStdString(file.string()) +
                              " was truncated, rewritten or became unreadable"),
               qPrintable(words));
      worst.add({words, since(cutAt, outcome->firstFailure->seen), since(cutAt)});
      leavesNobody();
    }
    worst.hold(kSeenWithin);
  }

  /// Ranks of torchrun or Slurm, whose port is not held by a socket.
  void aPortThatIsTakenIsNamed() {
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const QString plan = makeSplitPlan(m_ranks.path("apart.json"), QStringLiteral(CLEAVE_TEST_DATA "/models/llama"),
                                         2, {"--seq", "16"});
      ListenedRun run(plan, 2, {"--no-check"});
      auto meeting = launch::Listener::open({"127.0.0.1", run.meeting()});  // never answers a connection
      QVERIFY(meeting);
      const auto start = Clock::now();
      for (const int rank : {1, 0}) run.startRank(rank);
      Ended ended{};
      QCOMPARE(run.listener->exitCode(), exitCode(ErrorCode::Environment));
      ended.seen = since(start);
      for (const auto& rank : run.ranks) QVERIFY(rank->exitCode() > 0);
      ended.gone = since(start);
      const QString said = run.listener->err();
      QVERIFY2(said.contains(QStringLiteral("Rank 0 ")) &&
                   said.contains(QStringLiteral("port %1 on 127.0.0.1 is in use").arg(run.meeting())),
               qPrintable(said));
      leavesNobody();
      worst.add(ended);
    }
    worst.hold(kWithStart);
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
      Ended ended{};
      int named = -1;
      launch::LaunchRequest request = tooLarge({}, victim);  // it computes rather than waits
      request.rankArguments.back() = "100000";
      const auto outcome = launch::launch(
          request,
          [&](const launch::RankEvent& event) {
            if (event.message && std::holds_alternative<protocol::TrainingStep>(*event.message)) isTraining = true;
            if (event.notice.empty() || slowSince.load() == Clock::time_point{} || named >= 0) return;
            named = event.rank;
            ended.words = QString::fromStdString(event.notice);
            ended.seen = since(slowSince);
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
    worst.hold(kSeenWithin);
  }

  void aKilledLauncherLeavesNobody() {
    Worst worst;
    for (std::uint64_t round = 0; round < rounds(2); ++round) {
      const QString temporary = m_ranks.path(QStringLiteral("launcher-%1").arg(round));
      QDir().mkpath(temporary);
      Program launcher({CLEAVE_BIN_DIR "/cleave-cli", "run", CLEAVE_TEST_DATA "/models/llama", "--ranks", "2", "--seq",
                        "16", "--backend", "gloo", "--no-check", "--train-steps", "100000"},
                       {{"TMPDIR", temporary}});
      QVERIFY(waitUntil([&] { return ranksBelow(temporary).size() == 2; }));
      std::this_thread::sleep_for(milliseconds(below(2000)));
      ::kill(static_cast<pid_t>(launcher.pid()), SIGKILL);
      const auto start = Clock::now();
      QVERIFY(waitUntil([&] { return ranksBelow(temporary).empty(); }));
      worst.add({{}, {}, since(start)});
    }
    worst.hold(kSeenWithin, kSeenWithin);
  }
};

QTEST_GUILESS_MAIN(FailuresTest)
#include "tst_failures.moc"
