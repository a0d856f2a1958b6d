/// `--mesh dp=D,tp=T` on real ranks: replicas of a split model share a batch, and compute the same as the unsplit model
/// with the full batch.
#include "tests/support/cli_json.h"
#include "tests/support/machines.h"
#include "tests/support/rows.h"
#include "tests/support/safetensors_edit.h"

#include <QJsonArray>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <signal.h>

using namespace cleave::test;

namespace {

/// Trains if the arguments have a number of steps.
QJsonObject report(const QStringList& arguments, int exitCode = 0) {
  return json(QStringList{arguments.contains("--steps") ? "train" : "run"} + arguments + kSplit, exitCode);
}

/// Writes -100 over the first `count` labels of the first row.
Alteration withoutLabels(int count) {
  return [count](QJsonObject& header, QByteArray& data) {
    const auto start = header["labels"].toObject()["data_offsets"].toArray()[0].toInteger();
    for (int i = 0; i < count; ++i) qToLittleEndian<qint64>(-100, data.data() + start + i * 8);
  };
}

}  // namespace

class TestCliMesh : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

 private slots:
  void trainsAsTransformersDoes_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("sequence");
    for (const char* name : {"llama", "gpt2", "mixtral", "gemma2"}) {
      for (const char* mesh : {"dp=2,tp=2", "dp=1,tp=4", "dp=2,tp=1"})
        QTest::addRow("%s on %s", name, mesh) << name << mesh << "off";
    }
    QTest::newRow("llama on dp=2,tp=2, on the sequence") << "llama"
                                                         << "dp=2,tp=2"
                                                         << "on";
    QTest::newRow("one head for keys, in a fused layer") << "falcon"
                                                         << "dp=2,tp=2"
                                                         << "off";
  }
  void trainsAsTransformersDoes() {
    QFETCH(QString, name);
    QFETCH(QString, mesh);
    QFETCH(QString, sequence);
    const QJsonObject run = report(QStringList{family(name), "--mesh", mesh, "--sequence-parallel", sequence,
                                               "--expect", training(name + ".safetensors")} +
                                   kAsExpected);
    QVERIFY(run["passed"].toBool());
    QVERIFY2(run["outputs"].toArray().size() > 15, qPrintable(mesh));
    QVERIFY(run["violations"].toArray().isEmpty());
    const QJsonObject ran = run["mesh"].toObject();
    QCOMPARE(QString("dp=%1,tp=%2").arg(ran["dp"].toInt()).arg(ran["tp"].toInt()), mesh);
    QCOMPARE(run["world_size"].toInt(), ran["dp"].toInt() * ran["tp"].toInt());
    QCOMPARE(run["ranks"].toArray().size(), run["world_size"].toInt());
    const QJsonObject sum = run["replica_sum"].toObject();
    QCOMPARE(sum.isEmpty(), ran["dp"].toInt() == 1);
    if (sum.isEmpty()) return;
    QCOMPARE(sum["all_reduces"].toInt(), 2);  // the loss; the gradients, which are all float32
    QVERIFY(sum["predicted_us"].toDouble() > 0 && sum["us"].toDouble() > 0);
  }

  void comparesWithAnUnsplitRunOfTheWholeBatch_data() {
    const Rows<QString, QString, QStringList> row("name", "mesh", "asked");
    const QStringList steps{"--steps", "3", "--lr", "0.01", "--clip-norm", "0.5"};
    row("four replicas", "llama", "dp=4,tp=1", QStringList{"--batch", "4"} + steps);
    row("several rows each", "gpt2", "dp=2,tp=2", QStringList{"--batch", "6", "--seq", "16"} + steps);
    row("micro-batches", "llama", "dp=2,tp=2", QStringList{"--batch", "2", "--seq", "16", "--accumulate", "3"} + steps);
    row("half precision", "llama", "dp=2,tp=2",
        QStringList{"--batch", "2", "--seq", "16", "--dtype", "bfloat16"} + steps);
    row("one row each", "mixtral", "dp=2,tp=2", steps);
    row("forward", "gemma2", "dp=2,tp=2", QStringList{"--batch", "6", "--seq", "16"});
    row("forward, of one rank each", "mixtral", "dp=4,tp=1", QStringList{"--batch", "4", "--seq", "16"});
    row("a classifier", "bert-classification", "dp=2,tp=2", QStringList{"--batch", "4", "--seq", "16"} + steps);
  }
  void comparesWithAnUnsplitRunOfTheWholeBatch() {
    QFETCH(QString, name);
    QFETCH(QString, mesh);
    QFETCH(QStringList, asked);
    const QJsonObject run = report(QStringList{family(name), "--mesh", mesh} + asked);
    QVERIFY(run["passed"].toBool());
    QCOMPARE(run["compared_with"].toString(), "an unsplit run");
    QVERIFY(run["violations"].toArray().isEmpty());
  }

  /// The loss is the mean over the labels that count, so a replica's mean weighs by its number of labels.
  void rowsWithFewerLabelsWeighLess_data() {
    const Rows<int> row("without");
    row("some", 7);
    row("none in a replica's rows", 12);
  }
  void rowsWithFewerLabelsWeighLess() {
    QFETCH(int, without);
    const QString file = m_folder.filePath("labels.safetensors");
    writeAltered(family("llama") + "/expected.safetensors", file, withoutLabels(without));
    const QStringList rows{family("llama"), "--mesh", "dp=2,tp=2", "--input", file};
    const QJsonObject forward = report(rows);
    QVERIFY(forward["passed"].toBool());
    QVERIFY(forward["ranks"][0]["loss"].toDouble() > 0);
    const QStringList sgd{"--steps", "3", "--optimizer", "sgd", "--lr", "0.5"};
    QVERIFY(report(rows + sgd)["passed"].toBool());
    // With this learning rate, equal weights of the replicas fail the comparison.
    const QString whole = m_folder.filePath("whole.safetensors");
    const QStringList one{"train", family("llama"), "--ranks", "1", "--input", file, "--no-check", "--output", whole};
    QCOMPARE(cli(one + sgd).exitCode, 0);
    const QStringList even{family("llama"), "--mesh", "dp=2,tp=2", "--input", family("llama") + "/expected.safetensors",
                           "--expect",      whole};
    QVERIFY(!report(even + sgd, 1)["passed"].toBool());
  }

  void replicasComputeTheRowsOfAFile() {
    const QString rows = family("gemma2") + "/expected.safetensors";
    const QJsonObject run = report({family("gemma2"), "--mesh", "dp=2,tp=2", "--expect", rows});
    QVERIFY(run["passed"].toBool());
    QCOMPARE(run["outputs"].toArray().size(), 2);
    QCOMPARE(run["batch_of_replica"].toInt(), 1);
    const QString padded = family("mistral-padded-right");
    QVERIFY(report({padded, "--mesh", "dp=2,tp=2", "--expect", padded + "/expected.safetensors"})["passed"].toBool());
  }

  void aPlanRunsSeveralTimesOver() {
    const QString plan = m_folder.filePath("plan.json");
    QCOMPARE(cli(QStringList{"plan", family("llama"), "--ranks", "2", "--batch", "1", "--seq", "12", "--train",
                             "--json", plan} +
                 kSplit)
                 .exitCode,
             0);
    const QString rows = family("llama") + "/expected.safetensors";
    const QJsonObject run = json({"train", plan, "--mesh", "dp=2,tp=2", "--input", rows, "--steps", "2"});
    QVERIFY(run["passed"].toBool());
    const Finished printed = cli({"run", plan, "--mesh", "dp=2,tp=2", "--print-command", "torchrun", "--nodes", "2",
                                  "--master", "node0", "--backend", "gloo"});
    QCOMPARE(printed.exitCode, 0);
    QVERIFY2(printed.out.contains("# 4 ranks on 2 nodes, 2 on each"), printed.out.constData());
    QVERIFY2(printed.out.contains("--nproc-per-node 2") && printed.out.contains("--replicas 2"),
             printed.out.constData());
  }

  void ranksThatOthersStartReport() {
    const QString plan =
        makeSplitPlan(m_folder.filePath("listened.json"), family("llama"), 2, {"--batch", "1", "--seq", "12"});
    ListenedRun run(plan, 4, {"--mesh", "dp=2,tp=2"});
    for (int rank = 0; rank < 4; ++rank) run.startRank(rank, {"--replicas", "2"});
    QCOMPARE(run.listener->exitCode(), 0);
    QVERIFY2(run.listener->out().contains("passed: LlamaForCausalLM on 4 ranks (dp=2,tp=2) over gloo"),
             qPrintable(run.listener->out()));
  }

  void ranksOfAnotherMeshAreFound() {
    const QString plan =
        makeSplitPlan(m_folder.filePath("meshes.json"), family("llama"), 2, {"--batch", "1", "--seq", "12"});
    ListenedRun run(plan, 4, {"--mesh", "dp=2,tp=2"});
    for (int rank = 0; rank < 4; ++rank) run.startRank(rank, {"--replicas", rank == 3 ? "1" : "2"});
    QCOMPARE(run.listener->exitCode(), 2);
    QVERIFY2(run.listener->err().contains("4 ranks were started, but the plan needs 2 ranks."),
             qPrintable(run.listener->err()));
  }

  void aKilledRankEndsAllReplicas() {
    const QString plan =
        makeSplitPlan(m_folder.filePath("killed.json"), makeBigModel(m_folder.path()), 2, {"--seq", "512"});
    // The ranks read the plan from a folder in TMPDIR.
    Program run({CLEAVE_BIN_DIR "/cleave-cli", "run", plan, "--mesh", "dp=2,tp=2", "--backend", "gloo", "--no-check",
                 "--skip-weights"},
                {{"TMPDIR", m_folder.path()}});
    const auto ranks = [&] { return ranksBelow(m_folder.path()); };
    QVERIFY(waitUntil([&] { return ranks().size() == 4; }));
    ::kill(static_cast<pid_t>(ranks().back()), SIGKILL);
    QCOMPARE(run.exitCode(), 5);
    QVERIFY2(run.err().contains("was killed by signal 9"), qPrintable(run.err()));
    QVERIFY(waitUntil([&] { return ranks().empty(); }));
  }

  void refusesWhatIsNoMesh_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("exitCode");
    QTest::addColumn<QString>("says");
    const QString llama = family("llama");
    const auto row = [&](const char* says, int exitCode, const QStringList& arguments) {
      QTest::newRow(says) << arguments << exitCode << says;
    };
    row("--mesh is \"2x2\". Write dp=REPLICAS,tp=RANKS", 2, {llama, "--mesh", "2x2"});
    row("--mesh is \"dp=2,\". Write dp=REPLICAS", 2, {llama, "--mesh", "dp=2,"});
    row("--mesh is \"dp=2,dp=2\". Write dp=REPLICAS", 2, {llama, "--mesh", "dp=2,dp=2"});
    row("--mesh is \"dp=0,tp=2\". Write dp=REPLICAS", 2, {llama, "--mesh", "dp=0,tp=2"});
    row("--mesh is \"dp=2000,tp=2\", but dp must be in 1..1024", 2, {llama, "--mesh", "dp=2000,tp=2"});
    row("leave --ranks out", 2, {llama, "--mesh", "dp=2,tp=2", "--ranks", "4"});
    row("--batch is 3, not divisible by 2 replicas.", 2, {llama, "--mesh", "dp=2,tp=2", "--batch", "3"});
    row("is an exported program, whose batch cannot be split", 2, {training("llama-loss.pt2"), "--mesh", "dp=2,tp=2"});
  }
  void refusesWhatIsNoMesh() {
    QFETCH(QStringList, arguments);
    QFETCH(int, exitCode);
    QFETCH(QString, says);
    const Finished run = cli(QStringList{"run"} + arguments);
    QCOMPARE(run.exitCode, exitCode);
    QVERIFY2(run.err.contains(says.toUtf8()), run.err.constData());
  }

  void refusesAPlanOfOtherRanks() {
    const QString plan = makeSplitPlan(m_folder.filePath("other.json"), family("llama"), 2, {"--seq", "12"});
    const Finished run = cli({"run", plan, "--mesh", "dp=2,tp=4"});
    QCOMPARE(run.exitCode, 2);
    QVERIFY2(run.err.contains("but the plan is for 2 ranks. Use dp=2,tp=2."), run.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliMesh)
#include "tst_cli_mesh.moc"
