/// Real cleave-rank processes: successful runs, killed ranks and launchers, ranks started by hand, invalid plans. A
/// run's processes are identified by their plan file, which is in a separate folder, so that parallel tests are not
/// affected.
#include "launch/launcher.h"
#include "tests/support/loopback.h"
#include "tests/support/machines.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <QThread>

#include <functional>
#include <set>

#include <signal.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;
using test::Finished;

namespace {

constexpr int kPatienceMs = 180'000;  // time for starting programs on a busy machine; not a measurement

/// Starts cleave-rank with no launcher variables except `variables`.
void startRank(QProcess& process, const QStringList& arguments, const QMap<QString, QString>& variables) {
  auto environment = QProcessEnvironment::systemEnvironment();
  for (const QString& key : environment.keys()) {
    if (key.startsWith("SLURM_")) environment.remove(key);
  }
  for (const char* key : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) environment.remove(key);
  for (auto it = variables.begin(); it != variables.end(); ++it) environment.insert(it.key(), it.value());
  process.setProcessEnvironment(environment);
  process.start(CLEAVE_BIN_DIR "/cleave-rank", arguments);
}

}  // namespace

class RankProcessesTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;
  QString m_llama4, m_llama2, m_big;  ///< plan files
  QString m_bigModel;

  QString makePlan(const QString& name, const QString& model, int ranks, int sequence) {
    const QString file = m_folder.filePath(name);
    const Finished done = test::cli(
        {"plan", model, "--ranks", QString::number(ranks), "--seq", QString::number(sequence), "--json", file});
    if (done.exitCode != 0) qWarning("%s", done.err.constData());
    return done.exitCode == 0 ? file : QString();
  }

  static LaunchRequest request(const QString& plan, int ranks) {
    LaunchRequest result;
    result.rankProgram = CLEAVE_BIN_DIR "/cleave-rank";
    result.planFile = plan.toStdString();
    result.ranks = ranks;
    result.silence = std::chrono::seconds(60);
    return result;
  }

 private slots:
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    m_llama4 = makePlan("llama-4.json", CLEAVE_TEST_DATA "/models/llama", 4, 16);
    m_llama2 = makePlan("llama-2.json", CLEAVE_TEST_DATA "/models/llama", 2, 16);
    m_bigModel = test::makeBigModel(m_folder.path());
    m_big = makePlan("big.json", m_bigModel, 2, 512);
    QVERIFY(!m_llama4.isEmpty() && !m_llama2.isEmpty() && !m_big.isEmpty());
  }

  void cleanup() { QCOMPARE(test::ranksBelow(m_folder.path()).size(), std::size_t(0)); }

  void allRanksEndWithTheSameOutputs() {
    std::vector<std::vector<Phase>> phases(4);
    const auto outcome = launch::launch(request(m_llama4, 4), [&](const RankEvent& event) {
      if (!event.message) return;
      if (const auto* phase = std::get_if<PhaseChange>(&*event.message); phase && phase->done == 0) {
        auto& seen = phases[static_cast<std::size_t>(event.rank)];
        if (seen.empty() || seen.back() != phase->phase) seen.push_back(phase->phase);
      }
    });
    QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
    QVERIFY2(outcome->succeeded, outcome->firstFailure ? outcome->firstFailure->lastMessage.c_str() : "");
    for (int rank = 0; rank < 4; ++rank) {
      const auto& result = outcome->results[static_cast<std::size_t>(rank)];
      QVERIFY(result);
      QVERIFY(result->outputDigests == outcome->results.front()->outputDigests);
      QVERIFY(result->outputDigests.contains("logits") && result->outputDigests.contains("loss"));
      QVERIFY(result->hasLoss);
      QCOMPARE(result->loss, outcome->results.front()->loss);
      QVERIFY(result->bytesRead > 0);
      QCOMPARE(result->bytesRead, result->shardBytes);
      QVERIFY(phases[static_cast<std::size_t>(rank)] ==
              (std::vector{Phase::Spawned, Phase::Connecting, Phase::Loading, Phase::WarmUp, Phase::Running,
                           Phase::Gathering, Phase::Done}));
    }
  }

  void manyPassesGiveWhatOneGives() {
    const QString plan = m_folder.filePath("split.json");
    const Finished planned = test::cli({"plan", CLEAVE_TEST_DATA "/models/llama", "--ranks", "2", "--seq", "16",
                                        "--engine", "reference", "--json", plan});
    QVERIFY2(planned.exitCode == 0, planned.err.constData());
    const auto one = launch::launch(request(plan, 2), [](const RankEvent&) {});
    LaunchRequest often = request(plan, 2);
    often.rankArguments = {"--passes", "3"};
    int collectives = 0, firsts = 0;
    const auto three = launch::launch(often, [&](const RankEvent& event) {
      const auto* done = event.message ? std::get_if<CollectiveDone>(&*event.message) : nullptr;
      if (!done || event.rank != 0) return;
      ++collectives;
      firsts += done->index == 0 ? 1 : 0;
    });
    QVERIFY(one && one->succeeded && three && three->succeeded);
    const RankResult &expected = *one->results[0], &result = *three->results[0];
    QVERIFY(result.outputDigests == expected.outputDigests);
    QCOMPARE(result.allReduce, expected.allReduce);
    QCOMPARE(result.peak.program, expected.peak.program);
    QCOMPARE(collectives, 3 * (expected.allReduce + expected.allGather + expected.reduceScatter));
    QCOMPARE(firsts, 3);
    QVERIFY(result.stepMicroseconds > 0);
  }

  void aQuietRankReportsItsPhasesAndItsResult() {
    LaunchRequest quiet = request(m_llama2, 2);
    quiet.rankArguments = {"--quiet"};
    int phases = 0, samples = 0, others = 0;
    const auto outcome = launch::launch(quiet, [&](const RankEvent& event) {
      if (!event.message || event.rank != 0) return;
      const Message& message = *event.message;
      phases += std::holds_alternative<PhaseChange>(message) ? 1 : 0;
      samples += std::holds_alternative<MemorySample>(message) ? 1 : 0;
      others += std::holds_alternative<CollectiveDone>(message) ? 1 : 0;
    });
    QVERIFY(outcome && outcome->succeeded);
    QVERIFY(outcome->results[0]->outputDigests == outcome->results[1]->outputDigests);
    QVERIFY(outcome->results[0]->peak.program > 0 && outcome->results[0]->peak.process > 0);
    QVERIFY(phases >= 5);
    QVERIFY2(samples <= 1, "more than the one that the result's peak is of");
    QCOMPARE(others, 0);
  }

  /// A peak is a property of the program, whatever Gloo's threads do and when.
  void equalRanksMeasureTheSamePeakInEveryRun_data() {
    QTest::addColumn<QString>("dtype");
    QTest::newRow("float32") << "float32";
    QTest::newRow("bfloat16") << "bfloat16";  // summed in float32
  }
  void equalRanksMeasureTheSamePeakInEveryRun() {
    QFETCH(QString, dtype);
    const QString plan = m_folder.filePath("peaks-" + dtype + ".json");
    const Finished done =
        test::cli({"plan", CLEAVE_TEST_DATA "/models/llama", "--ranks", "4", "--seq", "16", "--sequence-parallel", "on",
                   "--engine", "reference", "--dtype", dtype, "--json", plan});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    std::set<std::int64_t> peaks;
    for (int round = 0; round < 4; ++round) {
      const auto outcome = launch::launch(request(plan, 4), [](const RankEvent&) {});
      QVERIFY(outcome && outcome->succeeded);
      for (const auto& result : outcome->results) peaks.insert(result->peak.program);
    }
    QCOMPARE(peaks.size(), std::size_t(1));
    QVERIFY(*peaks.begin() > 0);
  }

  void aKilledRankIsNamedAndTakesTheOthersAlong_data() {
    QTest::addColumn<int>("victim");
    QTest::addColumn<int>("phase");
    for (int victim : {0, 1}) {
      for (Phase phase : {Phase::Connecting, Phase::Loading, Phase::Running}) {
        QTest::addRow("rank %d %s", victim, toText(phase).data()) << victim << static_cast<int>(phase);
      }
    }
  }
  void aKilledRankIsNamedAndTakesTheOthersAlong() {
    QFETCH(int, victim);
    QFETCH(int, phase);
    LaunchRequest asked = request(m_big, 2);
    asked.rankArguments = {"--skip-weights"};
    std::int64_t pid = 0;
    bool isKilled = false;
    bool hasSurvivorFinished = false;
    const auto outcome = launch::launch(asked, [&](const RankEvent& event) {
      if (!event.message) return;
      const auto* hello = std::get_if<Hello>(&*event.message);
      if (hello && event.rank == victim) pid = hello->pid;
      if (std::holds_alternative<RankResult>(*event.message)) hasSurvivorFinished = true;
      const auto* change = std::get_if<PhaseChange>(&*event.message);
      if (change && event.rank == victim && change->phase == static_cast<Phase>(phase) && pid > 0 && !isKilled) {
        isKilled = true;
        ::kill(static_cast<pid_t>(pid), SIGKILL);
      }
    });
    QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
    QVERIFY(isKilled);
    QVERIFY(test::ranksBelow(m_folder.path()).empty());
    QVERIFY(!outcome->succeeded);
    QVERIFY(!hasSurvivorFinished);
    QCOMPARE(outcome->firstFailure->rank, victim);
    QVERIFY2(outcome->firstFailure->what.starts_with("was killed by signal 9"), outcome->firstFailure->what.c_str());
    for (const auto& result : outcome->results) QVERIFY(!result);
  }

  /// The ranks end within the time that their start took.
  void aKilledLauncherLeavesNoRank_data() {
    QTest::addColumn<bool>("waitsForTheStep");
    QTest::newRow("as soon as the ranks exist") << false;
    QTest::newRow("while they compute") << true;
  }
  void aKilledLauncherLeavesNoRank() {
    QFETCH(bool, waitsForTheStep);
    // The launcher writes its plan into a temporary folder. A folder below ours distinguishes its ranks from others.
    QTemporaryDir temporary(m_folder.filePath("launcher-XXXXXX"));
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("TMPDIR", temporary.path());
    QProcess launcher;
    launcher.setProcessEnvironment(environment);
    launcher.setProcessChannelMode(QProcess::MergedChannels);
    QElapsedTimer sinceStart;
    sinceStart.start();
    launcher.start(CLEAVE_BIN_DIR "/cleave-cli", {"run", m_bigModel, "--ranks", "2", "--seq", "512", "--backend",
                                                  "gloo", "--skip-weights", "--no-check"});
    QByteArray said;
    const bool isReached = test::waitUntil(
        [&] {
          launcher.waitForReadyRead(1);
          said += launcher.readAll();
          if (launcher.state() == QProcess::NotRunning) return true;
          return test::ranksBelow(temporary.path()).size() == 2 && (!waitsForTheStep || said.contains("\nrunning"));
        },
        kPatienceMs);
    QVERIFY2(isReached && launcher.state() == QProcess::Running, said.constData());
    const auto startMs = static_cast<int>(sinceStart.elapsed());
    ::kill(static_cast<pid_t>(launcher.processId()), SIGKILL);
    const bool areGone = test::waitUntil([&] { return test::ranksBelow(temporary.path()).empty(); }, startMs);
    launcher.waitForFinished();
    QVERIFY(areGone);
    QCOMPARE(launcher.exitStatus(), QProcess::CrashExit);  // it was killed while working, not after
  }

  void ranksMeetByTheVariablesOfTorchrunAndSlurm_data() {
    QTest::addColumn<bool>("isSlurm");
    QTest::newRow("torchrun") << false;
    QTest::newRow("Slurm") << true;
  }
  void ranksMeetByTheVariablesOfTorchrunAndSlurm() {
    QFETCH(bool, isSlurm);
    const QString port = QString::number(test::freePort());
    QProcess ranks[2];
    for (int rank : {1, 0}) {  // the listening rank starts last
      const QString own = QString::number(rank);
      const QMap<QString, QString> torchrun = {
          {"RANK", own}, {"LOCAL_RANK", own}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
      // srun sets its own variables. The port is given because the one from the job id may be in use here.
      const QMap<QString, QString> slurm = {{"SLURM_PROCID", own},           {"SLURM_LOCALID", own},
                                            {"SLURM_NTASKS", "2"},           {"SLURM_JOB_ID", "417"},
                                            {"SLURM_NODELIST", "localhost"}, {"MASTER_PORT", port}};
      startRank(ranks[rank], {m_llama2}, isSlurm ? slurm : torchrun);
    }
    QStringList outputs[2];
    for (int rank : {0, 1}) {
      QVERIFY(ranks[rank].waitForFinished(kPatienceMs));
      const QString said = QString::fromUtf8(ranks[rank].readAllStandardError());
      QCOMPARE(ranks[rank].exitStatus(), QProcess::NormalExit);
      QVERIFY2(ranks[rank].exitCode() == 0, qPrintable(said));
      auto digests = QRegularExpression(", (logits|loss) ([0-9a-f]{8,})\\b").globalMatch(said);
      while (digests.hasNext()) outputs[rank] << digests.next().captured();
    }
    QCOMPARE(outputs[0].size(), 2);
    QCOMPARE(outputs[0], outputs[1]);
  }

  /// The rank that waits without an answer ends at its own limit, with a sentence.
  void aMeetingThatDoesNotHappenEndsInTime_data() {
    QTest::addColumn<QString>("address");
    QTest::newRow("a port that keeps silent") << "127.0.0.1";
    QTest::newRow("a name that does not resolve") << "no-such-host.invalid";
  }
  void aMeetingThatDoesNotHappenEndsInTime() {
    QFETCH(QString, address);
    const test::LoopbackListener mute;
    QVERIFY(mute.port > 0);
    QProcess rank;
    startRank(
        rank, {m_llama2, "--connect-timeout", "2"},
        {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", address}, {"MASTER_PORT", QString::number(mute.port)}});
    const bool hasEnded = rank.waitForFinished(kPatienceMs);
    if (!hasEnded) rank.kill();
    ::close(mute.fd);
    QVERIFY(hasEnded);
    const QByteArray said = rank.readAllStandardError();
    QCOMPARE(rank.exitCode(), exitCode(ErrorCode::Environment));
    QVERIFY2(said.contains("rank 1: Rank 1 of 2 cannot connect to the others at " + address.toUtf8()),
             said.constData());
    QVERIFY2(said.contains("within 2 s"), said.constData());
  }

  /// torchrun itself, if the machine has it.
  void ranksRunUnderTorchrun() {
    const QString torchrun =
        qEnvironmentVariable("CLEAVE_TORCHRUN", QDir::homePath() + "/.cache/cleave/venv-torch-2.11.0/bin/torchrun");
    if (!QFile::exists(torchrun)) QSKIP("there is no torchrun here (CLEAVE_TORCHRUN names one)");
    QProcess process;
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(torchrun,
                  {"--standalone", "--no-python", "--nproc-per-node", "2", CLEAVE_BIN_DIR "/cleave-rank", m_llama2});
    QVERIFY(process.waitForFinished(kPatienceMs));
    const QString said = QString::fromUtf8(process.readAll());
    QVERIFY2(process.exitCode() == 0, qPrintable(said));
    QStringList logits;
    auto digests = QRegularExpression(", logits ([0-9a-f]{16})\\b").globalMatch(said);
    while (digests.hasNext()) logits << digests.next().captured(1);
    QCOMPARE(logits.size(), 2);
    QCOMPARE(logits[0], logits[1]);
  }

  void anInvalidPlanIsRejectedInOneSentence_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("phrase");
    QFile good(m_llama2);
    QVERIFY(good.open(QIODevice::ReadOnly));
    const QByteArray plan = good.readAll();
    QByteArray newer = plan;
    newer.replace("cleave.plan/1", "cleave.plan/99");
    QTest::newRow("empty") << QByteArray() << "JSON";
    QTest::newRow("no JSON") << QByteArray("ranks: 2") << "JSON";
    QTest::newRow("an array") << QByteArray("[1, 2]") << "plan";
    QTest::newRow("an empty object") << QByteArray("{}") << "schema";
    QTest::newRow("cut off") << plan.left(plan.size() / 2) << "JSON";
    QTest::newRow("of a newer version") << newer << "cleave.plan/99";
    QTest::newRow("bytes") << QByteArray(1000, '\xff') << "JSON";
  }
  void anInvalidPlanIsRejectedInOneSentence() {
    QFETCH(QByteArray, text);
    QFETCH(QString, phrase);
    const QString file = m_folder.filePath("bad.json");
    QFile bad(file);
    QVERIFY(bad.open(QIODevice::WriteOnly));
    bad.write(text);
    bad.close();
    expectRefusal(file, 3, phrase);
  }

  void aPlanThatIsMissingIsRefused() { expectRefusal(m_folder.filePath("missing.json"), 3, "No such file"); }

  void aPlanForMoreRanksThanStartedIsRefused() {
    expectRefusal(m_llama4, 2, "1 rank was started, but the plan needs 4 ranks.");
  }

  void theLauncherPassesARefusalOn() {
    const auto outcome = launch::launch(request(m_folder.filePath("missing.json"), 2), [](const RankEvent&) {});
    QVERIFY(outcome);
    QVERIFY(!outcome->succeeded);
    QCOMPARE(QString::fromStdString(outcome->firstFailure->what), QString("ended with code 3"));
    QCOMPARE(outcome->firstFailure->code, ErrorCode::BadInput);
    QVERIFY2(outcome->firstFailure->lastMessage.find("missing.json") != std::string::npos,
             outcome->firstFailure->lastMessage.c_str());
  }

 private:
  void expectRefusal(const QString& plan, int exitCode, const QString& phrase) {
    QProcess process;
    startRank(process, {plan}, {});
    QVERIFY(process.waitForFinished(kPatienceMs));
    const QRegularExpression notice("^rank 0: (process \\d+ on \\S+|failed)$");
    QStringList sentences;
    for (const QString& line : QString::fromUtf8(process.readAllStandardError()).split('\n', Qt::SkipEmptyParts)) {
      if (!notice.match(line).hasMatch()) sentences << line;
    }
    QCOMPARE(process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(process.exitCode(), exitCode);
    QCOMPARE(sentences.size(), 1);
    QVERIFY2(sentences.front().startsWith("rank 0: ") && sentences.front().endsWith('.'),
             qPrintable(sentences.front()));
    QVERIFY2(sentences.front().contains(phrase), qPrintable(sentences.front()));
  }
};

QTEST_GUILESS_MAIN(RankProcessesTest)
#include "tst_rank_processes.moc"
