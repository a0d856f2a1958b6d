#include "launch/launcher.h"
#include "tests/support/cli_process.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <dlfcn.h>

using namespace cleave;

namespace {

/// On which a kernel runs.
int gpus() { return launch::mayHaveGpu() ? static_cast<int>(launch::probeGpus().usable()) : 0; }

void skipReason(int wanted) {
  QSKIP(qPrintable(QStringLiteral("this machine has %1 GPUs; the test needs %2").arg(gpus()).arg(wanted)));
}

void passes(const QStringList& arguments) {
  const test::Finished done = test::cli(arguments + QStringList{"--json", "-"});
  QVERIFY2(done.exitCode == 0, done.err.constData());
  QVERIFY(QJsonDocument::fromJson(done.out).object()["passed"].toBool());
}

}  // namespace

/// NCCL runs on real GPUs; each row is skipped with the reason where there are too few.
class TestNccl : public QObject {
  Q_OBJECT
 private slots:
  void theSplitModelComputesWhatIsExpected_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("sequenceParallel");
    for (const char* name : {"llama", "llama-tied", "qwen2"}) {
      for (int ranks : {1, 2, 4}) QTest::addRow("%s on %d", name, ranks) << name << ranks << "off";
      QTest::addRow("%s on 2, sequence parallel", name) << name << 2 << "on";
    }
  }
  void theSplitModelComputesWhatIsExpected() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(QString, sequenceParallel);
    if (gpus() < ranks) {
      skipReason(ranks);
      return;
    }
    const QString folder = QStringLiteral(CLEAVE_TEST_DATA "/models/") + name;
    const test::Finished done =
        test::cli({"run", folder, "--ranks", QString::number(ranks), "--backend", "nccl", "--expect",
                   folder + "/expected.safetensors", "--sequence-parallel", sequenceParallel, "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY(QJsonDocument::fromJson(done.out).object()["passed"].toBool());
  }

  /// Forward, training and generation of every family on one GPU.
  void everyFamilyRunsOnOneGpu_data() {
    QTest::addColumn<QString>("name");
    const QDir families(QStringLiteral(CLEAVE_TEST_DATA "/families"));
    for (const QString& name : families.entryList(QDir::Dirs | QDir::NoDotAndDotDot))
      QTest::newRow(qPrintable(name)) << name;
  }
  void everyFamilyRunsOnOneGpu() {
    QFETCH(QString, name);
    if (gpus() < 1) {
      skipReason(1);
      return;
    }
    const QString folder = QStringLiteral(CLEAVE_TEST_DATA "/families/") + name;
    passes({"run", folder, "--ranks", "1", "--backend", "nccl", "--expect", folder + "/expected.safetensors"});
  }

  /// Against an unsplit run on a CPU.
  void trainsAndGenerates_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    for (const char* name : {"llama", "gpt2", "mixtral", "gemma2"}) {
      for (int ranks : {1, 2, 4}) QTest::addRow("%s on %d", name, ranks) << name << ranks;
    }
  }
  void trainsAndGenerates() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    if (gpus() < ranks) {
      skipReason(ranks);
      return;
    }
    const QStringList asked{QStringLiteral(CLEAVE_TEST_DATA "/families/") + name,
                            "--ranks",
                            QString::number(ranks),
                            "--backend",
                            "nccl",
                            "--engine",
                            "reference"};
    const QStringList train = QStringList{"train", "--steps", "3"} + asked;
    passes(train + QStringList{"--clip-norm", "1"});
    passes(train + QStringList{"--checkpoint-activations"});
    passes(QStringList{"generate", "--prompt", "5,6,7,8", "--tokens", "6"} + asked);
    if (ranks > 1) passes(train + QStringList{"--sequence-parallel", "on"});
  }

  void moreRanksThanGpusAreRefused() {
    const test::Finished done = test::cli({"run", QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks",
                                           QString::number(gpus() + 1), "--backend", "nccl"});
    QCOMPARE(done.exitCode, 4);
    QVERIFY2(done.err.contains("GPU"), done.err.constData());
  }

  void theLibraryLiesBesideTheProgramsAndLoadsWithoutADriver() {
    const QString library = QStringLiteral(CLEAVE_BIN_DIR "/libcleave_nccl.so");
    if (!QFile::exists(library)) QSKIP("this LibTorch has no CUDA, so libcleave_nccl.so is not built");
    void* handle = ::dlopen(qPrintable(library), RTLD_NOW | RTLD_LOCAL);
    QVERIFY2(handle, handle ? "" : ::dlerror());
  }
};

QTEST_GUILESS_MAIN(TestNccl)
#include "tst_nccl.moc"
