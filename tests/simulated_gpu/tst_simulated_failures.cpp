/// GPU failures and their error messages, on the simulated GPU.
#include "tests/support/patience.h"
#include "tests/support/rows.h"
#include "tests/support/simulated_run.h"

#include <QTemporaryDir>
#include <QTest>

#include <csignal>

using namespace cleave;
using cleave::test::kPatience;

namespace {

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/families/llama");
const QStringList kRun{kLlama, "--ranks", "2", "--engine", "reference", "--no-check"};

}  // namespace

class TestSimulatedFailures : public QObject {
  Q_OBJECT
 private slots:
  void aFailureIsNamed_data() {
    const test::Rows<QString, QStringList, int, QStringList> row("fault", "options", "exitCode", "phrases");
    const QStringList train{"--train-steps", "2"};
    row("memory while loading", "out_of_memory=1:24", QStringList{}, 4,
        QStringList{"Rank 1 ", "CUDA out of memory", "largest"});
    row("memory while training", "out_of_memory=1:150", train, 4,
        QStringList{"Rank 1 ", "CUDA out of memory", "largest"});
    row("memory of NCCL", "nccl_out_of_memory=1:4", QStringList{}, 4, QStringList{"Rank 1 ", "NCCL is out of memory"});
    row("a kernel", "fail=1:40", QStringList{}, 4, QStringList{"Rank 1 ", "an illegal memory access was encountered"});
    row("a kernel while training", "fail=0:200", train, 4,
        QStringList{"Rank 0 ", "an illegal memory access was encountered"});
    row("a collective that hangs", "hang=1:22", QStringList{"--collective-timeout", "2"}, 5,
        QStringList{"did not complete within 2 s"});
    // The host blocks on a value there and polls nothing.
    const QStringList soon{"--collective-timeout", "2"};
    row("a collective that hangs while training", "hang=1:5", train + soon, 5,
        QStringList{"Rank 1 of 2 gave up: all_reduce", "within 2 s"});
    row("a sum of gradients that hangs", "hang=1:25", train + soon + QStringList{"--clip-norm", "1"}, 5,
        QStringList{"Rank 1 of 2 gave up: all_reduce", "within 2 s"});
    row("a barrier that hangs", "hang=1:3", soon, 5, QStringList{" gave up: the barrier did not complete within 2 s"});
    row("one GPU for two ranks", "same_gpu=1", QStringList{}, 4, QStringList{"Ranks 0 and 1 have the same GPU"});
  }
  void aFailureIsNamed() {
    QFETCH(QString, fault);
    QFETCH(QStringList, options);
    QFETCH(int, exitCode);
    QFETCH(QStringList, phrases);
    const test::Finished done = test::simulatedRun(kRun + options, "devices=2," + fault);
    QVERIFY2(done.exitCode == exitCode, (QByteArray::number(done.exitCode) + done.err + done.out).constData());
    const QByteArray said = done.err + done.out;
    for (const QString& phrase : phrases) QVERIFY2(said.contains(phrase.toUtf8()), said.constData());
    QVERIFY2(!said.contains("did not answer"), said.constData());
  }

  /// Eight full GPUs take longer to release than the silence limit during a run.
  void aSlowTeardownIsNoFailure() {
    const test::Finished done = test::simulatedRun(kRun, "devices=2,slow_teardown=1:4000");
    QVERIFY2(done.exitCode == 0, (done.err + done.out).constData());
  }

  void aRunThatSucceedsEndsItsCommunicatorsInOrder_data() {
    const test::Rows<QStringList> row("options");
    row("forward", QStringList{"--ranks", "2"});
    row("groups", QStringList{"--mesh", "dp=2,tp=2", "--train-steps", "1", "--clip-norm", "1"});
  }
  void aRunThatSucceedsEndsItsCommunicatorsInOrder() {
    QFETCH(QStringList, options);
    const test::Finished done =
        test::simulatedRun(QStringList{kLlama, "--engine", "reference", "--no-check"} + options);
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(!done.err.contains("destroy_process_group"), done.err.constData());
  }

  void theProbeSaysWhatCudaOffers_data() {
    const test::Rows<QString, int, QString> row("settings", "exitCode", "phrase");
    row("usable", "devices=2", 0, "GPU 1: Simulated GPU, sm_90, ");
    row("no driver", "driver=0", 4, "no NVIDIA driver is loaded; CUDA 13.0 needs driver 580 or newer");
    row("an old driver", "driver=12080", 4,
        "the NVIDIA driver supports CUDA 12.8; CUDA 13.0 needs driver 580 or newer");
    row("an old GPU", "capability=70", 4, "no kernel ran: ");
    row("no GPU", "devices=0", 4, "no CUDA-capable device is detected");
    row("MIG", "mig=1", 0, "MIG 1g.10gb");
  }
  void theProbeSaysWhatCudaOffers() {
    QFETCH(QString, settings);
    QFETCH(int, exitCode);
    QFETCH(QString, phrase);
    const test::Finished done = test::onSimulatedGpu(settings, test::simulatedProgram("cleave-rank"), {"--probe"});
    QVERIFY2(done.exitCode == exitCode, (done.err + done.out).constData());
    QVERIFY2(done.out.contains(phrase.toUtf8()), done.out.constData());
  }

  /// /dev of a machine with a GPU, in its own namespace: `auto` asks CUDA and uses its answer.
  void autoTakesWhatCudaAnswers_data() {
    const test::Rows<QString, QString, QString> row("settings", "ranks", "sentence");
    row("GPUs", "devices=2", "2", "NCCL on 2 of 2 GPUs.");
    row("too few", "devices=1", "2", "Gloo on CPUs: NCCL needs one GPU per rank, but CUDA lists 1 GPU for 2 ranks.");
    row("no driver", "driver=0", "2", "Gloo on CPUs: no NVIDIA driver is loaded; CUDA 13.0 needs driver 580 or newer.");
    row("an old driver", "driver=12080", "1",
        "Gloo on CPUs: the NVIDIA driver supports CUDA 12.8; CUDA 13.0 needs driver 580 "
        "or newer.");
    row("an old GPU", "capability=70", "1", "cannot run a kernel of this LibTorch");
    row("too small", "memory_mib=500", "1", "Gloo on CPUs: a rank needs ");
    row("no peer access", "devices=2,no_peer_access=1", "2",
        "GPUs 0 and 1 have no direct access to each other's memory");
  }
  void autoTakesWhatCudaAnswers() {
    QFETCH(QString, settings);
    QFETCH(QString, ranks);
    QFETCH(QString, sentence);
    const test::Finished done = inMachineWithDeviceFile(
        settings, {test::simulatedProgram("cleave-cli"), "run", kLlama, "--ranks", ranks, "--engine", "reference"});
    if (done.exitCode == kNoNamespace) QSKIP("this user may not make a mount namespace");
    QVERIFY2(done.exitCode == 0, (done.err + done.out).constData());
    QVERIFY2(done.out.contains(sentence.toUtf8()), done.out.constData());
  }

  /// A hanging driver is waited for, and Ctrl+C ends the wait.
  void aQuestionToCudaEndsWithASignal() {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SIMULATED_GPU", "devices=2,slow_probe=1000000");
    process.setProcessEnvironment(environment);
    process.start(test::simulatedProgram("cleave-cli"), QStringList{"run"} + kRun + QStringList{"--backend", "nccl"});
    QByteArray said;
    const auto asks = [&] { return (said += process.readAllStandardError()).contains("probe GPUs"); };
    QTRY_VERIFY_WITH_TIMEOUT(asks(), kPatience);
    ::kill(static_cast<pid_t>(process.processId()), SIGINT);
    QVERIFY(process.waitForFinished(60'000));
    said += process.readAllStandardError();
    QVERIFY2(process.exitCode() == 130, said.constData());
    QVERIFY2(said.contains("Stopped while asking CUDA for its GPUs."), said.constData());
  }

  /// The real library, which finds no driver here.
  void autoRunsOnCpusWhereADeviceFileIsAllThereIs() {
    if (!QFile::exists(CLEAVE_BIN_DIR "/libcleave_nccl.so")) QSKIP("this LibTorch has no CUDA");
    if (QFile::exists("/dev/nvidia0")) QSKIP("this machine has GPUs");
    const test::Finished done = inMachineWithDeviceFile(
        {}, {CLEAVE_BIN_DIR "/cleave-cli", "run", kLlama, "--ranks", "1", "--engine", "reference"});
    if (done.exitCode == kNoNamespace) QSKIP("this user may not make a mount namespace");
    QVERIFY2(done.exitCode == 0, (done.err + done.out).constData());
    QVERIFY2(done.out.contains("Gloo on CPUs: no NVIDIA driver is loaded; CUDA "), done.out.constData());
  }

 private:
  static constexpr int kNoNamespace = 77;
  /// Runs the words with a private /dev that has an empty file nvidia0.
  static test::Finished inMachineWithDeviceFile(const QString& settings, const QStringList& words) {
    const QString script = QStringLiteral(
        "d=$(mktemp -d) && mount -t tmpfs tmpfs \"$d\" || exit 77\n"
        "for f in null zero random urandom full tty; do touch $d/$f && mount --bind /dev/$f $d/$f; done\n"
        "mkdir -p $d/shm && mount --bind /dev/shm $d/shm\n"
        "ln -s /proc/self/fd $d/fd; touch $d/nvidia0\n"
        "mount --rbind $d /dev || exit 77\n"
        "exec \"$@\"");
    return test::onSimulatedGpu(settings, "unshare", QStringList{"-m", "sh", "-c", script, "sh"} + words);
  }
};

QTEST_GUILESS_MAIN(TestSimulatedFailures)
#include "tst_simulated_failures.moc"
