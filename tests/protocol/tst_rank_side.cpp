/// A rank's side of a run without LibTorch: its identity, its reports, its end.
#include "protocol/rank_side.h"

#include <QMap>
#include <QTest>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <thread>
#include <utility>

using namespace cleave;
using namespace cleave::protocol;

namespace {

using Variables = QMap<QString, QString>;

Result<RankEnvironment> read(const Variables& variables) {
  QMap<QString, QByteArray> texts;  // keeps getenv's answer valid
  for (auto it = variables.begin(); it != variables.end(); ++it) texts[it.key()] = it.value().toUtf8();
  return readRankEnvironment([&](const char* name) -> const char* {
    const auto found = texts.constFind(name);
    return found == texts.constEnd() ? nullptr : found->constData();
  });
}

/// "rank 1 local 1 of 2 at host:4711"
QString textOf(const RankEnvironment& e) {
  return QString::fromStdString(
      fmt::format("rank {} local {} of {} at {}:{}", e.rank, e.localRank, e.worldSize, e.masterAddress, e.masterPort));
}

/// Exit code of a child process that runs `body`; -signal if a signal ended it; -1000 if it did not end.
int exitCodeOf(
    const std::function<void()>& body, const std::function<void()>& parentDoes = [] {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  parentDoes();
  for (int i = 0; i < 6000; ++i) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ::usleep(10'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1000;
}

struct Pipe {
  std::array<int, 2> fds{-1, -1};
  Pipe() {
    if (::pipe(fds.data()) != 0) qFatal("no pipe");
  }
  ~Pipe() {
    closeRead();
    closeWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void closeRead() { close(0); }
  void closeWrite() { close(1); }

 private:
  void close(std::size_t end) {
    if (fds[end] >= 0) ::close(std::exchange(fds[end], -1));
  }
};

/// All lines until the end of file, read in small pieces so that writers find a full pipe.
std::vector<std::string> linesFrom(int fd) {
  std::string text;
  std::array<char, 777> buffer;
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  std::vector<std::string> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    lines.push_back(text.substr(start, end - start));
  }
  return lines;
}

}  // namespace

class RankSideTest : public QObject {
  Q_OBJECT
 private slots:
  void readsWhoItIs_data() {
    QTest::addColumn<Variables>("variables");
    QTest::addColumn<QString>("who");
    const auto row = [](const char* name, Variables variables, const char* who) {
      QTest::newRow(name) << variables << QString(who);
    };
    const Variables torchrun = {
        {"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node3"}, {"MASTER_PORT", "29500"}};
    const Variables slurm = {{"SLURM_PROCID", "3"},
                             {"SLURM_LOCALID", "2"},
                             {"SLURM_NTASKS", "4"},
                             {"SLURM_NODELIST", "gpu[07-08]"},
                             {"SLURM_JOB_ID", "1234567"}};
    const auto with = [](Variables variables, const Variables& more) {
      variables.insert(more);
      return variables;
    };
    const auto without = [](Variables variables, const QStringList& names) {
      for (const QString& name : names) variables.remove(name);
      return variables;
    };
    row("nothing", {}, "rank 0 local 0 of 1 at 127.0.0.1:0");
    row("empty variables are ignored", {{"RANK", ""}, {"WORLD_SIZE", ""}, {"MASTER_ADDR", ""}, {"MASTER_PORT", ""}},
        "rank 0 local 0 of 1 at 127.0.0.1:0");
    row("a world of one", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "rank 0 local 0 of 1 at 127.0.0.1:0");
    row("rank 0 of a world that nobody counts", {{"RANK", "0"}}, "rank 0 local 0 of 1 at 127.0.0.1:0");
    row("torchrun", torchrun, "rank 5 local 1 of 8 at node3:29500");
    row("torchrun without a local rank", without(torchrun, {"LOCAL_RANK"}), "rank 5 local 5 of 8 at node3:29500");
    row("torchrun without an address", without(torchrun, {"MASTER_ADDR"}), "rank 5 local 1 of 8 at 127.0.0.1:29500");
    row("Slurm", slurm, "rank 3 local 2 of 4 at gpu07:34567");
    row("Slurm, the step's nodes before the job's", with(slurm, {{"SLURM_STEP_NODELIST", "gpu08"}}),
        "rank 3 local 2 of 4 at gpu08:34567");
    row("Slurm, a port of one's own", with(slurm, {{"MASTER_PORT", "4711"}, {"MASTER_ADDR", "10.0.0.1"}}),
        "rank 3 local 2 of 4 at 10.0.0.1:4711");
    row("Slurm, the job's number gives the lowest port", with(slurm, {{"SLURM_JOB_ID", "40000"}}),
        "rank 3 local 2 of 4 at gpu07:20000");
    row("Slurm, the job's number gives the highest port", with(slurm, {{"SLURM_JOB_ID", "19999"}}),
        "rank 3 local 2 of 4 at gpu07:39999");
    row("torchrun within a Slurm job", with(slurm, torchrun), "rank 5 local 1 of 8 at node3:29500");
    row("the largest world",
        {{"RANK", "65535"}, {"WORLD_SIZE", "65536"}, {"LOCAL_RANK", "0"}, {"MASTER_PORT", "65535"}},
        "rank 65535 local 0 of 65536 at 127.0.0.1:65535");
  }
  void readsWhoItIs() {
    QFETCH(Variables, variables);
    QFETCH(QString, who);
    const auto environment = read(variables);
    QVERIFY2(environment, environment ? "" : environment.error().message.c_str());
    QCOMPARE(textOf(*environment), who);
  }

  void theAgentsStoreIsNotServedAgain_data() {
    QTest::addColumn<Variables>("variables");
    QTest::addColumn<QString>("prefix");
    QTest::newRow("no agent") << Variables{} << "";
    QTest::newRow("an agent without a store") << Variables{{"TORCHELASTIC_USE_AGENT_STORE", "False"}} << "";
    QTest::newRow("an agent with a store")
        << Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}} << "/worker/attempt_0";
    QTest::newRow("after two restarts") << Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                     {"TORCHELASTIC_RESTART_COUNT", "2"}}
                                        << "/worker/attempt_2";
  }
  void theAgentsStoreIsNotServedAgain() {
    QFETCH(Variables, variables);
    QFETCH(QString, prefix);
    variables.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}});
    const auto environment = read(variables);
    QVERIFY(environment);
    QCOMPARE(QString::fromStdString(environment->agentStore), prefix);
  }

  void saysWhichVariableIsWrong_data() {
    QTest::addColumn<Variables>("variables");
    QTest::addColumn<QString>("sentence");
    const auto row = [](const char* name, Variables variables, const char* sentence) {
      QTest::newRow(name) << variables << QString(sentence);
    };
    row("no rank", {{"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}},
        "There are 2 ranks, but this rank's number is unknown. Set RANK or SLURM_PROCID.");
    row("no world", {{"RANK", "1"}, {"MASTER_PORT", "4711"}},
        "RANK=1 is set, but the number of ranks is unknown. Set WORLD_SIZE or SLURM_NTASKS.");
    row("no world in Slurm", {{"SLURM_PROCID", "2"}},
        "SLURM_PROCID=2 is set, but the number of ranks is unknown. Set WORLD_SIZE or SLURM_NTASKS.");
    row("no port", {{"RANK", "0"}, {"WORLD_SIZE", "2"}},
        "There are 2 ranks, but MASTER_PORT is not set. Start them with torchrun, srun or cleave-cli run.");
    row("a rank beyond the world", {{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2 must be an integer in 0..1.");
    row("a negative rank", {{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK=-1 must be an integer in 0..1.");
    row("a rank of Slurm's beyond torchrun's world", {{"SLURM_PROCID", "3"}, {"WORLD_SIZE", "2"}},
        "SLURM_PROCID=3 must be an integer in 0..1.");
    row("no number", {{"WORLD_SIZE", "two"}}, "WORLD_SIZE=two must be an integer in 1..65536.");
    row("more than a number", {{"WORLD_SIZE", "2x"}}, "WORLD_SIZE=2x must be an integer in 1..65536.");
    row("a space", {{"WORLD_SIZE", " 2"}}, "WORLD_SIZE= 2 must be an integer in 1..65536.");
    row("a fraction", {{"RANK", "0"}, {"WORLD_SIZE", "2.0"}}, "WORLD_SIZE=2.0 must be an integer in 1..65536.");
    row("a world of 0 ranks", {{"WORLD_SIZE", "0"}}, "WORLD_SIZE=0 must be an integer in 1..65536.");
    row("a world too large", {{"WORLD_SIZE", "65537"}}, "WORLD_SIZE=65537 must be an integer in 1..65536.");
    row("beyond 32 bits", {{"SLURM_NTASKS", "4294967298"}}, "SLURM_NTASKS=4294967298 must be an integer in 1..65536.");
    row("a negative local rank", {{"LOCAL_RANK", "-1"}}, "LOCAL_RANK=-1 must be an integer in 0..65536.");
    row("port 0", {{"MASTER_PORT", "0"}}, "MASTER_PORT=0 must be an integer in 1..65535.");
    row("a port too high", {{"MASTER_PORT", "65536"}}, "MASTER_PORT=65536 must be an integer in 1..65535.");
    row("a job without a number", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "job"}},
        "SLURM_JOB_ID=job must be an integer in 0..2147483647.");
  }
  void saysWhichVariableIsWrong() {
    QFETCH(Variables, variables);
    QFETCH(QString, sentence);
    const auto environment = read(variables);
    QVERIFY(!environment);
    QCOMPARE(environment.error().code, ErrorCode::BadUsage);
    QCOMPARE(QString::fromStdString(environment.error().message), sentence);
  }

  void findsTheFirstHost_data() {
    QTest::addColumn<QString>("list");
    QTest::addColumn<QString>("host");
    const auto row = [](const char* list, const char* host) { QTest::newRow(list) << QString(list) << QString(host); };
    row("node1", "node1");
    row("node1,node2", "node1");
    row("node[07-09,12],gpu3", "node07");
    row("node[12]", "node12");
    row("node[3,1]", "node3");
    row("a,node[1-2]", "a");
    row("node[1-3]-ib", "node1-ib");
    row("node[1-3].cluster.org,other", "node1.cluster.org");
    row("rack[2-4]node[07,09]", "rack2node07");
    row("rack[1,2]node[3-4],rack9", "rack1node3");
    row("[10-12]", "10");
    row("10.0.0.1,10.0.0.2", "10.0.0.1");
    row("node[5-", "node5");
    row("node[", "node");
    row("", "");
  }
  void findsTheFirstHost() {
    QFETCH(QString, list);
    QFETCH(QString, host);
    QCOMPARE(QString::fromStdString(firstHost(list.toStdString())), host);
  }

  void linesOfSeveralThreadsStayWhole() {
    constexpr int kThreads = 4, kMessages = 200;
    Pipe pipe;
    std::vector<std::string> lines;
    std::thread reader([&] { lines = linesFrom(pipe.fds[0]); });
    {
      EventWriter writer(pipe.fds[1]);
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&writer, thread] {
          // Longer than one write to a pipe.
          for (int i = 0; i < kMessages; ++i)
            writer.write(RankError{std::string(6000, static_cast<char>('a' + thread)), false});
        });
      }
    }
    pipe.closeWrite();
    reader.join();
    QCOMPARE(lines.size(), std::size_t(kThreads * kMessages));
    std::map<std::string, int> counts;
    for (const std::string& line : lines) {
      const auto message = decode(line);
      QVERIFY2(message, message ? "" : message.error().message.c_str());
      ++counts[std::get<RankError>(*message).message];
    }
    for (int thread = 0; thread < kThreads; ++thread)
      QCOMPARE(counts[std::string(6000, static_cast<char>('a' + thread))], kMessages);
  }

  void aWriterWithoutAReaderEndsTheProcess() {
    Pipe pipe;
    pipe.closeRead();
    const int code = exitCodeOf([&] {
      ::signal(SIGPIPE, SIG_IGN);  // as cleave-rank does
      EventWriter(pipe.fds[1]).write(Heartbeat{});
    });
    QCOMPARE(code, exitCode(ErrorCode::Cancelled));
  }

  void theEndOfTheControlPipeEndsTheProcess_data() {
    QTest::addColumn<QByteArray>("written");
    QTest::newRow("closed at once") << QByteArray();
    QTest::newRow("bytes end nothing") << QByteArray("bytes");
  }
  void theEndOfTheControlPipeEndsTheProcess() {
    QFETCH(QByteArray, written);
    Pipe control, alive;
    int seenBefore = -1;
    const int code = exitCodeOf(
        [&] {
          control.closeWrite();
          endWithControlPipe(control.fds[0]);
          ::usleep(200'000);
          // Still running although the pipe had bytes: report it, then wait for the end.
          (void)!::write(alive.fds[1], "x", 1);
          for (;;) ::pause();
        },
        [&] {
          control.closeRead();
          alive.closeWrite();
          (void)!::write(control.fds[1], written.constData(), static_cast<std::size_t>(written.size()));
          if (written.isEmpty()) control.closeWrite();
          char byte = 0;
          seenBefore = static_cast<int>(::read(alive.fds[0], &byte, 1));
          control.closeWrite();
        });
    QCOMPARE(code, exitCode(ErrorCode::Cancelled));
    QCOMPARE(seenBefore, written.isEmpty() ? 0 : 1);
  }

  void peopleReadWhatMattersToThem() {
    const auto text = [](const Message& message) {
      return QString::fromStdString(readable(3, message).value_or("(nothing)"));
    };
    QCOMPARE(text(Hello{kProtocolVersion, 3, 4711, "cuda:1"}), "rank 3: process 4711 on cuda:1");
    QCOMPARE(text(PhaseChange{Phase::WarmUp, 0, 0}), "rank 3: warm-up");
    QCOMPARE(text(PhaseChange{Phase::Loading, 5, 10}), "(nothing)");
    QCOMPARE(text(RankError{"There is no such tensor.", false}), "rank 3: There is no such tensor.");
    QCOMPARE(text(Measurement{Measured::AllReduce, 4096, 1, 9, 0.25e-3, 0.125e-3, 1e-3}),
             "rank 3: all_reduce of 4096: 0.250 ms, from 0.125 to 1.000");
    for (const Message& message : {Message(Heartbeat{}), Message(MemorySample{}), Message(CollectiveDone{})})
      QCOMPARE(text(message), "(nothing)");
    QCOMPARE(text(Generated{1200, 45'000, 15, 6144}),
             "rank 3: prompt 1.200 ms, 15 decode steps 45.000 ms, cache 6144 bytes");
    QCOMPARE(text(TrainingStep{2, 5, 3.25, 0.5, true, 1500}),
             "rank 3: step 2 of 5: loss 3.250000, gradient norm 0.500000, 1.500 ms");
    RankResult result;
    result.stepMicroseconds = 12345;
    result.bytesRead = 100;
    result.allReduce = 4;
    result.allGather = 1;
    result.peak.program = 2048;
    QCOMPARE(text(result),
             "rank 3: 12.345 ms, 100 bytes read, 4 all-reduces, 1 all-gathers, 0 reduce-scatters, peak of the program "
             "2048 bytes");
    result.hasLoss = true;
    result.loss = 5.5;
    result.outputDigests = {{"logits", "ab12"}};
    QVERIFY2(text(result).endsWith(", peak of the program 2048 bytes, loss 5.500000, logits ab12"),
             qPrintable(text(result)));
  }
};

QTEST_GUILESS_MAIN(RankSideTest)
#include "tst_rank_side.moc"
