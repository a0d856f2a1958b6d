#include "tests/support/rows.h"
#include "tests/support/shim_runs.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

using namespace cleave;
using test::Finished;

namespace {

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

/// Splits layers so that a pass has all-reduces, which would not pay here.
const QStringList kSplit{"--pin", "model.layers.*.mlp.gate_proj==column", "--pin", "model.layers.*.mlp.down_proj==row"};

// A timeout is the wrong reason where a failure is visible. The default limit of a collective is longer than a test
// waits for a process.
const QByteArray kTimedOut = "did not complete within";

const QStringList kRunLlama = QStringList{"run", kLlama, "--backend", "nccl", "--no-check"} + kSplit;
const QStringList kRunOnTwo = kRunLlama + QStringList{"--ranks", "2"};

void addRow(const char* name, const char* settings, int exitCode, const QStringList& says) {
  QTest::addRow("%s", name) << QString(settings) << exitCode << says;
}

/// The right exit code, and each of `says` on either stream.
bool endsWith(const Finished& done, int exitCode, const QStringList& says) {
  bool isRight = !done.crashed && done.exitCode == exitCode;
  for (const QString& text : says) isRight = isRight && QString(done.out + done.err).contains(text);
  if (!isRight) qWarning("exit code %d: %s%s", done.exitCode, done.out.constData(), done.err.constData());
  return isRight;
}

}  // namespace

/// The real libcleave_nccl.so, ProcessGroupNCCL and caching allocator, on shims for CUDA. Kernels compute nothing, so
/// no outputs are compared.
class TestCudaShims : public QObject {
  Q_OBJECT
 private slots:
  void init() {
    if (const QString why = test::ShimRuns::whyNone(); !why.isEmpty()) QSKIP(qPrintable(why));
  }

  /// The first sum over the ranks is checked by the ranks themselves.
  void ranksConnectRunAndCloseTheirCommunicators_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QStringList>("arguments");
    const auto row = [](const char* name, const QStringList& arguments, const char* settings = "") {
      QTest::newRow(name) << QString(settings) << 2 << QStringList{"--ranks", "2"} + arguments;
    };
    row("forward", {});
    // Attention in bfloat16 is cuDNN's on newer GPUs, and there is no shim for cuDNN.
    row("forward in bfloat16", {"--dtype", "bfloat16"}, "capability=80");
    row("sequence parallel", {"--sequence-parallel", "on"});
    row("training", {"--train-steps", "2"});
    row("generation", {"--prompt", "5,6,7", "--generate", "4"});
    QTest::newRow("two replicas of two ranks")
        << "devices=4" << 4 << QStringList{"--mesh", "dp=2,tp=2", "--batch", "2"};
  }
  void ranksConnectRunAndCloseTheirCommunicators() {
    QFETCH(QString, settings);
    QFETCH(int, ranks);
    QFETCH(QStringList, arguments);
    const Finished done = m_shims.run(settings, "cleave-cli", kRunLlama + arguments);
    QVERIFY(endsWith(done, 0, {"ran to the end"}));
    QVERIFY2(!done.err.contains("destroy_process_group"), done.err.constData());
    for (int rank = 0; rank < ranks; ++rank) {
      const qsizetype groups = m_shims.count(rank, "ncclCommInit");
      QVERIFY(groups >= 1);
      QCOMPARE(m_shims.count(rank, "ncclCommDestroy"), groups);
      QCOMPARE(m_shims.count(rank, "ncclCommAbort"), 0);
      QCOMPARE(m_shims.count(rank, "mismatch"), 0);
    }
  }

  void eventsThatAreNotReadyAreWaitedFor() {
    QVERIFY(endsWith(m_shims.run("event_delay_us=3000", "cleave-cli", kRunOnTwo), 0, {"ran to the end"}));
  }

  void aCommunicatorThatClosesSlowlyDelaysTheEndAlone() {
    QVERIFY(endsWith(m_shims.run("slow_destroy=1:1500", "cleave-cli", kRunOnTwo), 0, {"ran to the end"}));
    QCOMPARE(m_shims.count(1, "ncclCommDestroy"), 1);
    QCOMPARE(m_shims.count(1, "ncclCommAbort"), 0);
  }

  /// In every sample: requested <= allocated <= reserved <= used on the device <= its memory.
  void memoryFiguresAreInOrder() {
    writePlan();
    const auto ranks = m_shims.startRanks("", {m_shims.path("plan.json"), "--backend", "nccl", "--events-fd", "1"});
    for (const auto& rank : ranks) {
      const Finished done = test::finishedOf(*rank);
      QCOMPARE(done.exitCode, 0);
      qint64 most = 0;
      for (const QByteArray& line : done.out.split('\n')) {
        const QJsonObject sample = QJsonDocument::fromJson(line).object();
        if (sample["type"] != "memory") continue;
        const auto figure = [&](const char* name) { return sample[QLatin1String(name)].toInteger(); };
        const qint64 requested = figure("allocated"), rounding = figure("rounding");
        QVERIFY2(requested >= 0 && rounding >= 0, line.constData());
        QVERIFY2(requested + rounding <= figure("reserved"), line.constData());
        QVERIFY2(figure("reserved") <= figure("device_used"), line.constData());
        QVERIFY2(figure("device_used") < figure("device_total"), line.constData());
        QVERIFY2(figure("peak") >= requested, line.constData());
        most = std::max(most, requested);
      }
      QVERIFY(most > 0);
    }
  }

  void float32ProductsAreNotRoundedToTf32() {
    test::ShimRuns shims;
    shims.set("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1");  // NVIDIA's images set both
    shims.set("NVIDIA_TF32_OVERRIDE", "1");
    QVERIFY(endsWith(shims.run("cublas_tf32", "cleave-cli", kRunOnTwo), 0, {"ran to the end"}));
    for (int rank = 0; rank < 2; ++rank) {
      QVERIFY(shims.count(rank, "cublasSgemm") > 0);
      QVERIFY2(!shims.calls(rank).join('\n').contains("tf32=1"), qPrintable(shims.calls(rank).join('\n')));
    }
  }

  void aKilledRankIsNamedAndTheOthersStop() {
    const auto process = m_shims.start("hang=1:2", "cleave-cli", kRunOnTwo);
    QVERIFY(m_shims.killOnceItCalls(1, "collective 2 hangs"));
    const Finished done = test::finishedOf(*process);
    QVERIFY(endsWith(done, 5, {"Rank 1", "signal 9"}));
    QVERIFY2(!done.err.contains(kTimedOut), done.err.constData());
  }

  /// Nobody watches the processes of ranks that are started apart: the communicator reports the failure.
  void aRankReportsThatItsPeerIsGone() {
    writePlan();
    const auto ranks = m_shims.startRanks("peer_gone,hang=1:2", {m_shims.path("plan.json"), "--backend", "nccl"});
    QVERIFY(m_shims.killOnceItCalls(1, "collective 2 hangs"));
    const Finished left = test::finishedOf(*ranks[0]);
    QVERIFY(endsWith(left, 5, {"Rank 0 of 2 gave up", "connection to another rank broke"}));
    QVERIFY2(!left.err.contains(kTimedOut), left.err.constData());
    QCOMPARE(m_shims.count(0, "ncclCommAbort"), 1);
    QCOMPARE(m_shims.count(0, "ncclCommDestroy"), 0);
    test::finishedOf(*ranks[1]);
  }

  /// A value of the loss is read on the host, which then waits where nobody polls.
  void aTrainingRankReportsThatItsPeerIsGone() {
    writePlan({"--train"});
    const auto ranks = m_shims.startRanks("peer_gone,hang=1:5",
                                          {m_shims.path("plan.json"), "--backend", "nccl", "--train-steps", "1"});
    QVERIFY(m_shims.killOnceItCalls(1, "collective 5 hangs"));
    QVERIFY(endsWith(test::finishedOf(*ranks[0]), 5, {"Rank 0 of 2 gave up", "connection to another rank broke"}));
    test::finishedOf(*ranks[1]);
  }

  void aCollectiveThatHangsIsNamedWithinItsLimit() {
    writePlan();
    const auto ranks =
        m_shims.startRanks("hang=0:1", {m_shims.path("plan.json"), "--backend", "nccl", "--connect-timeout", "4"});
    const Finished hung = test::finishedOf(*ranks[0]);
    QCOMPARE(m_shims.count(0, "collective 1 hangs"), 1);
    QVERIFY(endsWith(hung, 5, {"Rank 0 of 2 gave up", "all_reduce of 4 bytes", "within 4 s"}));
    QCOMPARE(test::finishedOf(*ranks[1]).exitCode, 5);
    for (int rank = 0; rank < 2; ++rank) {
      QCOMPARE(m_shims.count(rank, "ncclCommAbort"), 1);
      QCOMPARE(m_shims.count(rank, "ncclCommDestroy"), 0);
    }
  }

  /// The results are out by then: nobody waits for the closing barrier as long as for a collective of the program.
  void aRunThatIsDoneEndsThoughAPeerHangsWhileItCloses() {
    writePlan();
    const QStringList arguments{m_shims.path("plan.json"), "--backend", "nccl"};
    for (const auto& rank : m_shims.startRanks("", arguments)) QCOMPARE(test::finishedOf(*rank).exitCode, 0);
    const QStringList ends = m_shims.calls(1).filter("collectives=");
    QCOMPARE(ends.size(), 1);
    const QString last = ends.front().section("collectives=", 1);
    const auto ranks = m_shims.startRanks("hang=1:" + last, arguments);
    for (const auto& rank : ranks) QVERIFY(endsWith(test::finishedOf(*rank), 0, {"done"}));
    QCOMPARE(m_shims.count(1, "collective " + last + " hangs"), 1);
  }

  void aRankWithoutMemoryFailsByItself_data() {
    const test::Rows<QString> row("settings");
    row("the first allocation", "out_of_memory=1:1");
    row("a later allocation", "out_of_memory=1:2");
    row("NCCL connects", "nccl_out_of_memory=1:1");
    row("NCCL's first sum", "nccl_out_of_memory=1:2");
    row("a collective of the program", "nccl_out_of_memory=1:5");
  }
  void aRankWithoutMemoryFailsByItself() {
    QFETCH(QString, settings);
    const Finished done = m_shims.run(settings, "cleave-cli", kRunOnTwo);
    QVERIFY2(!done.err.contains("did not answer"), done.err.constData());
    QVERIFY(endsWith(done, 4, {"Rank 1", "out of memory"}));
  }

  void twoRanksOnOneGpuAreRefused() {
    const Finished done = m_shims.run("same_gpu", "cleave-cli", kRunOnTwo);
    QVERIFY(endsWith(done, 4, {"Ranks 0 and 1 have the same GPU, but NCCL needs one GPU per rank"}));
    QVERIFY2(!done.err.contains("frame #"), done.err.constData());
  }

  void aRunSaysWhyItsGpusCannotBeUsed_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("exitCode");
    QTest::addColumn<QStringList>("says");
    addRow("no driver", "no_driver", 4, {"no NVIDIA driver is loaded", "gloo"});
    addRow("old driver", "driver=12040", 4, {"the NVIDIA driver supports CUDA 12.4", "driver 580"});
    addRow("no GPU", "devices=0", 4, {"CUDA lists no GPU"});
    addRow("too few GPUs", "devices=1", 4, {"CUDA lists 1 GPU for 2 ranks"});
    addRow("MIG", "mig", 4, {"one MIG instance"});
    addRow("no kernel image", "no_kernel_image,capability=70", 4, {"sm_70", "no kernel image is available"});
    addRow("full GPU", "memory_mib=600", 4, {"Each rank needs", "--ignore-memory"});
    addRow("no peer access", "no_peer_access", 0, {"GPUs 0 and 1 have no direct access to each other's memory"});
  }
  void aRunSaysWhyItsGpusCannotBeUsed() {
    QFETCH(QString, settings);
    QFETCH(int, exitCode);
    QFETCH(QStringList, says);
    QVERIFY(endsWith(m_shims.run(settings, "cleave-cli", kRunOnTwo), exitCode, says));
  }

  void theProbePrintsWhatCudaOffers_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("exitCode");
    QTest::addColumn<QStringList>("says");
    addRow("two GPUs", "", 0, {"2 GPUs", "sm_90", "a kernel ran"});
    addRow("no driver", "no_driver", 4, {"no NVIDIA driver is loaded"});
    addRow("old driver", "driver=12040", 4, {"driver for CUDA 12.4"});
    addRow("no GPU", "devices=0", 4, {"no CUDA-capable device is detected"});
    addRow("no kernel image", "no_kernel_image", 4, {"no kernel image is available"});
    addRow("MIG", "mig", 0, {"MIG 1g.10gb", "1 GPU"});
    addRow("no memory", "out_of_memory=0:1", 4, {"out of memory"});
  }
  void theProbePrintsWhatCudaOffers() {
    QFETCH(QString, settings);
    QFETCH(int, exitCode);
    QFETCH(QStringList, says);
    QVERIFY(endsWith(m_shims.run(settings, "cleave-rank", {"--probe"}), exitCode, says));
  }

  void ranksAreCalibrated() {
    const Finished done = m_shims.run("", "cleave-cli", {"calibrate", "--ranks", "2", "--backend", "nccl"});
    QVERIFY(endsWith(done, 0, {}));
    QVERIFY2(!done.err.contains("destroy_process_group"), done.err.constData());
    for (int rank = 0; rank < 2; ++rank) QCOMPARE(m_shims.count(rank, "ncclCommAbort"), 0);
  }

 private:
  /// plan.json of llama on two ranks.
  void writePlan(const QStringList& more = {}) {
    const Finished done = test::cliProgram(
        QStringList{"plan", kLlama, "--ranks", "2", "--json", m_shims.path("plan.json")} + kSplit + more);
    QCOMPARE(done.exitCode, 0);
  }

  test::ShimRuns m_shims;
};

QTEST_GUILESS_MAIN(TestCudaShims)
#include "tst_cuda_shims.moc"
