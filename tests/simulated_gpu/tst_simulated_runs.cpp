/// The options of a run on the simulated GPU.
#include "tests/support/simulated_run.h"

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave;

namespace {

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/families/llama");

QJsonObject rankOf(const QJsonObject& report, int rank) { return report["ranks"].toArray()[rank].toObject(); }

}  // namespace

class TestSimulatedRuns : public QObject {
  Q_OBJECT
 private slots:
  void passes_data() {
    QTest::addColumn<QStringList>("arguments");
    const auto row = [](const char* name, const QString& family, const QStringList& arguments) {
      const QStringList engine = arguments.contains("--engine") ? QStringList() : QStringList{"--engine", "reference"};
      QTest::newRow(name) << QStringList{QStringLiteral(CLEAVE_TEST_DATA "/families/") + family} + engine + arguments;
    };
    row("forward, one rank, the optimum", "llama", {"--ranks", "1", "--engine", "optimal"});
    row("forward, sequence parallel", "llama", {"--ranks", "4", "--sequence-parallel", "on"});
    // Collectives of the replica groups and of the ranks inside a replica alternate.
    row("replicas that clip", "llama", {"--mesh", "dp=2,tp=2", "--train-steps", "3", "--clip-norm", "1"});
    row("sums over neighbours", "llama", {"--ranks", "4", "--train-steps", "3", "--sequence-parallel", "on"});
    row("AdamW", "gpt2", {"--ranks", "2", "--train-steps", "3", "--optimizer", "adamw", "--accumulate", "2"});
    row("experts, checkpointed", "mixtral", {"--ranks", "2", "--train-steps", "2", "--checkpoint-activations"});
    row("bfloat16", "llama", {"--ranks", "4", "--dtype", "bfloat16"});
    row("float16", "qwen2", {"--ranks", "2", "--dtype", "float16"});
    row("bfloat16, training", "llama", {"--ranks", "2", "--dtype", "bfloat16", "--train-steps", "2"});
    row("a prompt of two rows", "llama", {"--ranks", "2", "--prompt", "5,6,7,8;1,2,3,4", "--generate", "6"});
    row("made-up weights", "llama", {"--ranks", "2", "--skip-weights"});
  }
  void passes() {
    QFETCH(QStringList, arguments);
    QByteArray wrong;
    // Slow kernels: code that does not wait for them reads memory that is not written yet.
    test::passedReport(arguments, wrong, "devices=4,delay_us=100");
    QVERIFY2(wrong.isEmpty(), wrong.constData());
  }

  /// The masks equal those of an unsplit run.
  void dropsOutAsUnsplit() {
    const QString gpt2 = QStringLiteral(CLEAVE_TEST_DATA "/families/gpt2");
    QTemporaryDir folder;
    QFile::link(gpt2 + "/model.safetensors", folder.filePath("model.safetensors"));
    QFile given(gpt2 + "/config.json"), changed(folder.filePath("config.json"));
    QVERIFY(given.open(QIODevice::ReadOnly) && changed.open(QIODevice::WriteOnly));
    QJsonObject config = QJsonDocument::fromJson(given.readAll()).object();
    for (const char* key : {"attn_pdrop", "resid_pdrop", "embd_pdrop"}) config[key] = 0.2;
    changed.write(QJsonDocument(config).toJson());
    changed.close();
    QByteArray wrong;
    test::passedReport({folder.path(), "--ranks", "2", "--engine", "reference", "--train-steps", "2", "--optimizer",
                        "sgd", "--dropout", "on"},
                       wrong);
    QVERIFY2(wrong.isEmpty(), wrong.constData());
  }

  void severalShapesRunOnTheSameWeights() {
    const test::Finished done =
        test::simulatedRun({kLlama, "--ranks", "2", "--engine", "reference", "--shapes", "2x8,1x4", "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY(QJsonDocument::fromJson(done.out)["passed"].toBool());
  }

  void noDifferenceIsFoundOnTheDevice() {
    const test::Finished done = test::simulatedRun({kLlama, "--ranks", "2", "--engine", "reference", "--bisect"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("an unsplit run on GPU 0 (Simulated GPU)"), done.out.constData());
  }

  void calibrationMeasuresTheDevice() {
    QTemporaryDir folder;
    const QString profile = folder.filePath("profile.json");
    const test::Finished done =
        test::onSimulatedGpu("devices=2", test::simulatedProgram("cleave-cli"),
                             {"calibrate", "--ranks", "2", "--backend", "nccl", "--output", profile}, 300'000);
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QFile file(profile);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.readAll().contains("Simulated GPU"));
  }

  void theTimelineHasTheDevicesTimes() {
    QByteArray wrong;
    const QJsonObject report =
        test::passedReport({kLlama, "--ranks", "2", "--engine", "reference"}, wrong, "devices=2,delay_us=200");
    QVERIFY2(wrong.isEmpty(), wrong.constData());
    // Each kernel starts 200 µs late, on the device and not on the host.
    QVERIFY(rankOf(report, 0)["step_us"].toInt() > 200 * 20);
    QVERIFY(!report["time"].toObject().isEmpty());
    QCOMPARE(report["precision"].toString(), "IEEE float32 (TF32 off)");
    QCOMPARE(report["compared_with"].toString(), "an unsplit run on GPU 0 (Simulated GPU)");
  }

  /// The program's bytes are the tensors' bytes, without cuBLAS workspaces and the allocator's rounding.
  void memoryIsWhatThePlanPredicts_data() {
    QTest::addColumn<QStringList>("options");
    QTest::newRow("forward") << QStringList{};
    QTest::newRow("training") << QStringList{"--train-steps", "3", "--optimizer", "adamw"};
    QTest::newRow("generation") << QStringList{"--prompt", "5,6,7,8", "--generate", "4"};
  }
  void memoryIsWhatThePlanPredicts() {
    QFETCH(QStringList, options);
    QByteArray wrong;
    // A short sequence: attention is not fused here, and keeps its probabilities.
    const QStringList sizes = options.contains("--prompt") ? QStringList() : QStringList{"--seq", "4", "--batch", "8"};
    const QJsonObject report =
        test::passedReport(QStringList{kLlama, "--ranks", "2", "--engine", "reference"} + sizes + options, wrong);
    QVERIFY2(wrong.isEmpty(), wrong.constData());
    const double predicted = report["plan"]["predicted_memory"].toDouble();
    for (int rank = 0; rank < 2; ++rank) {
      const QJsonObject of = rankOf(report, rank);
      const double peak = of["peak_memory"].toDouble();
      QVERIFY2(peak < 1.15 * predicted, qPrintable(QStringLiteral("%1 of %2").arg(peak).arg(predicted)));
      QVERIFY(of["allocator_rounding"].toDouble() > 0);
    }
  }

  /// A whole model that does not fit on one GPU is compared on CPUs, and the report contains the reason.
  void theUnsplitRunIsOnCpusWhereOneGpuIsTooSmall() {
    QByteArray wrong;
    const QJsonObject report = test::passedReport({kLlama, "--ranks", "1", "--engine", "reference", "--ignore-memory"},
                                                  wrong, "devices=1,memory_mib=500");
    QVERIFY2(wrong.isEmpty(), wrong.constData());
    QCOMPARE(report["compared_with"].toString(), "an unsplit run on CPUs");
    const QString notes = QString::fromUtf8(QJsonDocument(report["notes"].toArray()).toJson());
    QVERIFY2(notes.contains("The unsplit run used CPUs: it needs "), qPrintable(notes));
  }
};

QTEST_GUILESS_MAIN(TestSimulatedRuns)
#include "tst_simulated_runs.moc"
