/// Runs on several machines, simulated by several launchers on this one: the printed commands work, and the listener
/// reports the same as a local run. tst_two_hosts.cpp has two networks.
#include "tests/support/cli_json.h"
#include "tests/support/machines.h"

#include <QJsonArray>
#include <QTemporaryDir>

#include <signal.h>

using namespace cleave::test;

namespace {

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");
const QString kExpected = kLlama + "/expected.safetensors";

/// Path of PyTorch's launcher in LibTorch's wheel; empty if it is not installed.
QString torchrun() {
  const QStringList found = QDir(QDir::homePath() + "/.cache/cleave").entryList({"venv-torch-*"}, QDir::Dirs);
  for (const QString& name : found) {
    const QString program = QDir::homePath() + "/.cache/cleave/" + name + "/bin/torchrun";
    if (QFile::exists(program)) return program;
  }
  return {};
}

QStringList commandsIn(const QString& printed) {
  QStringList commands;
  for (const QString& line : printed.split('\n', Qt::SkipEmptyParts)) {
    if (line.contains("torchrun --no-python") && !line.startsWith('#')) commands << line;
  }
  return commands;
}

}  // namespace

class TestCliMachines : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;
  QString m_plan, m_otherPlan, m_big, m_torchrun = torchrun();

  std::unique_ptr<Program> typed(const QString& line) const {
    return std::make_unique<Program>(
        QStringList{"sh", "-c", line},
        std::map<QString, QString>{{"PATH", QFileInfo(m_torchrun).path() + ":" + qEnvironmentVariable("PATH")}});
  }
  QString path(const char* name) const { return m_folder.filePath(name); }

 private slots:
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    m_plan = makeSplitPlan(path("plan.json"), kLlama, 4, {"--batch", "2", "--seq", "16"});
    m_otherPlan = makeSplitPlan(path("other.json"), kLlama, 4, {"--batch", "2", "--seq", "16", "--seed", "1"});
    m_big = makeSplitPlan(path("big.json"), makeBigModel(m_folder.path()), 2, {"--seq", "512"});
  }
  void cleanup() {
    QVERIFY(waitUntil([&] { return ranksBelow(m_folder.path()).empty(); }));
  }

  void theCommandForOneNodeWorks() {
    if (m_torchrun.isEmpty()) QSKIP("no torchrun beside LibTorch");
    const Finished printed = cliProgram({"run", m_plan, "--print-command", "torchrun", "--backend", "gloo"});
    QCOMPARE(printed.exitCode, 0);
    const QStringList commands = commandsIn(QString::fromUtf8(printed.out));
    QCOMPARE(commands.size(), 1);
    const auto run = typed(commands.front());
    QCOMPARE(run->exitCode(), 0);
    for (int rank = 0; rank < 4; ++rank)
      QVERIFY2(run->err().contains(QString("rank %1: done").arg(rank)), qPrintable(run->err()));
  }

  void theCommandsForTwoNodesWorkWithAListener() {
    if (m_torchrun.isEmpty()) QSKIP("no torchrun beside LibTorch");
    const QString master = "127.0.0.1:" + QString::number(freePort());
    const QString report = path("report.json"), output = path("outputs.safetensors");
    ListenedRun run(m_plan, 4,
                    {"--nodes", "2", "--master", master, "--expect", kExpected, "--json", report, "--output", output});
    QVERIFY(run.listener->says("waiting for the ranks"));
    const QStringList commands = commandsIn(run.listener->err());
    QCOMPARE(commands.size(), 2);
    const auto first = typed(commands[0]), second = typed(commands[1]);
    QCOMPARE(run.listener->exitCode(), 0);
    QCOMPARE(first->exitCode(), 0);
    QCOMPARE(second->exitCode(), 0);
    QVERIFY2(run.listener->out().contains("passed: LlamaForCausalLM on 4 ranks over gloo"),
             qPrintable(run.listener->out()));
    // The result equals that of a local run.
    const Finished local = cliProgram({"run", m_plan, "--backend", "gloo", "--expect", kExpected, "--json",
                                       path("l.json"), "--output", path("l.safetensors")});
    QCOMPARE(local.exitCode, 0);
    const QJsonObject there = readJson(report), here = readJson(path("l.json"));
    QCOMPARE(there["passed"], here["passed"]);
    QCOMPARE(there["outputs"], here["outputs"]);
    QCOMPARE(there["ranks"].toArray().size(), 4);
    QCOMPARE(bytesOf(output), bytesOf(path("l.safetensors")));
  }

  void aRunIsComparedWithAnUnsplitOneToo() {
    ListenedRun run(m_plan, 4, {});
    for (int rank = 0; rank < 4; ++rank) run.startRank(rank);
    QCOMPARE(run.listener->exitCode(), 0);
    QVERIFY2(run.listener->out().contains("from an unsplit run"), qPrintable(run.listener->out()));
  }

  void ranksOfAnotherPlanAreNoProof() {
    ListenedRun run(m_plan, 4, {"--expect", kExpected});
    ListenedRun other(m_otherPlan, 4, {});
    for (int rank = 0; rank < 4; ++rank)
      other.startRank(rank, {"--input", kExpected}, {{"CLEAVE_EVENTS_TO", run.events()}});
    QCOMPARE(run.listener->exitCode(), 3);
    QVERIFY2(run.listener->err().contains("Rank 0 ran a different plan"), qPrintable(run.listener->err()));
  }

  void aRankWithAnotherTokenIsRejected() {
    ListenedRun run(m_plan, 4, {});
    Program& rank = run.startRank(0, {}, {{"CLEAVE_RUN_TOKEN", "another-token-of-a-run"}});
    QCOMPARE(rank.exitCode(), 2);
    QVERIFY2(rank.err().contains("rejected rank 0: its token"), qPrintable(rank.err()));
    QVERIFY(run.listener->says("Rank 0 was rejected"));
  }

  void aKilledRankIsNamed() {
    ListenedRun run(m_big, 2, {"--skip-weights", "--no-check"});
    for (int rank = 0; rank < 2; ++rank) run.startRank(rank, {"--skip-weights"});
    QVERIFY(run.listener->says("running"));
    ::kill(static_cast<pid_t>(run.ranks[1]->pid()), SIGKILL);
    QCOMPARE(run.listener->exitCode(), 5);
    QVERIFY2(run.listener->err().contains("Rank 1 ended without a result: its connection was closed"),
             qPrintable(run.listener->err()));
    QVERIFY(run.ranks[0]->exitCode() != 0);
  }

  /// An error that a rank reports keeps its message and its exit code.
  void aRankThatCannotLoadIsNamed() {
    ListenedRun run(m_big, 2, {"--skip-weights", "--no-check"});
    for (int rank = 0; rank < 2; ++rank) run.startRank(rank, {"--input", path("no-such-file")});
    QCOMPARE(run.listener->exitCode(), 3);
    QVERIFY2(run.listener->err().contains("no-such-file"), qPrintable(run.listener->err()));
    QVERIFY2(run.ranks[0]->exitCode() != 0 && run.ranks[0]->err().contains("no-such-file"),
             qPrintable(run.ranks[0]->err()));
  }

  void ranksEndWithTheListener_data() {
    QTest::addColumn<int>("signal");
    QTest::newRow("Ctrl-C") << SIGINT;
    QTest::newRow("killed") << SIGKILL;
  }
  void ranksEndWithTheListener() {
    QFETCH(int, signal);
    ListenedRun run(m_big, 2, {"--skip-weights", "--no-check"});
    for (int rank = 0; rank < 2; ++rank) run.startRank(rank, {"--skip-weights"});
    QVERIFY(run.listener->says("running"));
    ::kill(static_cast<pid_t>(run.listener->pid()), signal);
    QCOMPARE(run.listener->exitCode(), signal == SIGINT ? 130 : -1);
    for (const auto& rank : run.ranks) {
      QVERIFY(rank->exitCode() > 0);
      QVERIFY2(rank->err().contains("the listener at " + run.events() + " has ended or is unreachable") ||
                   rank->err().contains("peer"),
               qPrintable(rank->err()));
    }
  }

  void ctrlCEndsTheWaiting() {
    ListenedRun run(m_plan, 4, {});
    QVERIFY(run.listener->says("waiting for the ranks"));
    ::kill(static_cast<pid_t>(run.listener->pid()), SIGINT);
    QCOMPARE(run.listener->exitCode(), 130);
  }

  void wrongOptionsAreRefused_data() {
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* words, int code, const QStringList& options) {
      QTest::newRow(words) << options << code << QString(words);
    };
    row("--print-command needs a plan file", 2, {kLlama, "--print-command", "torchrun"});
    row("--listen needs a plan file", 2, {kLlama, "--listen", "127.0.0.1"});
    row("do not divide over 3 nodes", 2, {"PLAN", "--print-command", "srun", "--nodes", "3"});
    row("do not divide over 3 nodes", 2, {"PLAN", "--listen", "127.0.0.1", "--nodes", "3"});
    row("--nodes sets up ranks on other machines", 2, {"PLAN", "--nodes", "2"});
    row("--master sets up ranks on other machines", 2, {"PLAN", "--master", "node0"});
    row("--listen is \"29500\". Write HOST:PORT", 2, {"PLAN", "--listen", "29500"});
    row("--print-command and --shapes exclude each other", 2, {"PLAN", "--print-command", "srun", "--shapes", "1x8"});
    row("The plan is not for training", 3, {"PLAN", "--print-command", "torchrun", "--steps", "2"});
    row("Ranks on other machines read the plan file", 3, {"SMALL", "--print-command", "srun", "--input", kExpected});
    row("Cannot listen on 192.0.2.1", 4, {"PLAN", "--listen", "192.0.2.1"});
  }
  void wrongOptionsAreRefused() {
    QFETCH(QStringList, options);
    QFETCH(int, code);
    QFETCH(QString, words);
    options.replaceInStrings("PLAN", m_plan).replaceInStrings("SMALL", m_big);
    const Finished done = cliProgram(QStringList{options.contains("--steps") ? "train" : "run"} + options);
    QVERIFY2(done.exitCode == code && QString::fromUtf8(done.err).contains(words), done.err.constData());
  }

 private:
  static QJsonObject readJson(const QString& file) { return QJsonDocument::fromJson(bytesOf(file)).object(); }
  static QByteArray bytesOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
};

QTEST_GUILESS_MAIN(TestCliMachines)
#include "tst_cli_machines.moc"
