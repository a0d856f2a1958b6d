#include "launch/launcher.h"
#include "tests/support/cli_process.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <dlfcn.h>

using namespace cleave;

namespace {

int gpus() { return launch::localGpuCount(); }

void skipReason(int wanted) {
  QSKIP(qPrintable(QStringLiteral("this machine has %1 GPUs; the test needs %2").arg(gpus()).arg(wanted)));
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
