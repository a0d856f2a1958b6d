/// `--shapes` on real ranks: one set of processes loads the weights once, and each shape equals an unsplit run.
#include "tests/support/cli_json.h"
#include "tests/support/machines.h"

#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include <signal.h>

using namespace cleave::test;

namespace {

/// Trains if the arguments have a number of steps.
QJsonObject runsOf(const QStringList& arguments, int exitCode = 0) {
  return json(QStringList{arguments.contains("--steps") ? "train" : "run"} + arguments + kSplit, exitCode);
}

QJsonObject reportOf(const QJsonObject& runs, int index) { return runs["runs"][index]["report"].toObject(); }

bool hasNote(const QJsonObject& report, const QString& words) {
  for (const QJsonValue& note : report["notes"].toArray()) {
    if (note.toString().contains(words)) return true;
  }
  return false;
}

}  // namespace

class TestCliShapes : public QObject {
  Q_OBJECT
 private slots:
  void shapesShareTheWeightsThatAreLoadedOnce_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("ranks");
    for (const char* name : {"llama", "gpt2", "mixtral", "gemma2"})
      QTest::newRow(name) << name << QStringList{"--ranks", "2"};
    QTest::newRow("four ranks") << "llama" << QStringList{"--ranks", "4"};
    QTest::newRow("replicas") << "gpt2" << QStringList{"--mesh", "dp=2,tp=2"};
    QTest::newRow("an encoder") << "bert-no-mask" << QStringList{"--ranks", "2"};
    QTest::newRow("half precision") << "llama" << QStringList{"--ranks", "2", "--dtype", "float16"};
  }
  void shapesShareTheWeightsThatAreLoadedOnce() {
    QFETCH(QString, name);
    QFETCH(QStringList, ranks);
    const QJsonObject runs = runsOf(QStringList{family(name), "--shapes", "2x8,4x12,2x8,2x5"} + ranks);
    QVERIFY(runs["passed"].toBool());
    QCOMPARE(runs["runs"].toArray().size(), 4);
    const QJsonArray first = reportOf(runs, 0)["ranks"].toArray();
    QCOMPARE(first.size(), ranks.contains("2") ? 2 : 4);
    for (int shape = 0; shape < 4; ++shape) {
      const QJsonObject report = reportOf(runs, shape);
      QVERIFY(report["passed"].toBool());
      QCOMPARE(report["compared_with"].toString(), "an unsplit run");
      QCOMPARE(hasNote(report, "No rank loaded weights for this shape"), shape > 0);
      for (int rank = 0; rank < first.size(); ++rank) {
        const QJsonObject one = report["ranks"][rank].toObject();
        QCOMPARE(one["storages"].toString().size(), 16);
        QCOMPARE(one["storages"], first[rank]["storages"]);
        QCOMPARE(one["bytes_read"].toInteger() > 0, shape == 0);
      }
    }
    // The third shape runs the first program again, with the same inputs.
    QCOMPARE(reportOf(runs, 2)["ranks"][0]["loss"], reportOf(runs, 0)["ranks"][0]["loss"]);
    QVERIFY(reportOf(runs, 1)["ranks"][0]["loss"] != reportOf(runs, 0)["ranks"][0]["loss"]);
  }

  void aShapeIsPaddedToOneThatIsPlanned_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("options");
    for (const char* name : {"llama", "gpt2", "mixtral", "bloom", "gemma3_text", "opt"})
      QTest::newRow(name) << name << QStringList();
    QTest::newRow("with a mask") << "llama" << QStringList{"--mask", "on"};
  }
  void aShapeIsPaddedToOneThatIsPlanned() {
    QFETCH(QString, name);
    QFETCH(QStringList, options);
    const QJsonObject runs = runsOf(
        QStringList{family(name), "--ranks", "2", "--shapes", "2x16,1x11,2x16,1x20", "--pad-to-planned"} + options);
    QVERIFY(runs["passed"].toBool());
    for (int shape = 0; shape < 4; ++shape) {
      QVERIFY(reportOf(runs, shape)["passed"].toBool());
      const bool isPadded = hasNote(reportOf(runs, shape), "batch 1, sequence 11 ran padded to batch 2, sequence 16");
      QCOMPARE(isPadded, shape == 1);
    }
  }

  /// The shapes share parameters and optimizer states: with AdamW the second shape depends on the first.
  void trainsOneShapeAfterTheOther_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("options");
    QTest::newRow("llama") << "llama" << QStringList{"--ranks", "2", "--clip-norm", "1"};
    QTest::newRow("padded") << "llama" << QStringList{"--ranks", "2", "--pad-to-planned"};
    QTest::newRow("momentum") << "gpt2" << QStringList{"--ranks", "2", "--optimizer", "momentum"};
    QTest::newRow("half precision") << "mixtral" << QStringList{"--ranks", "2", "--dtype", "bfloat16"};
    QTest::newRow("replicas") << "gemma2" << QStringList{"--mesh", "dp=2,tp=2", "--accumulate", "2"};
  }
  void trainsOneShapeAfterTheOther() {
    QFETCH(QString, name);
    QFETCH(QStringList, options);
    const QJsonObject runs = runsOf(QStringList{family(name), "--shapes", "4x12,2x8,4x12", "--steps", "3", "--lr",
                                                "0.001", "--weight-decay", "0.1"} +
                                    options);
    QVERIFY(runs["passed"].toBool());
    for (int shape = 0; shape < 3; ++shape) {
      const QJsonObject report = reportOf(runs, shape);
      QVERIFY(report["passed"].toBool());
      QVERIFY(report["outputs"].toArray().size() > 15);
      QCOMPARE(report["training"]["steps"].toArray().size(), 3);
    }
    const auto lossOf = [&](int shape, int step) {
      return reportOf(runs, shape)["training"].toObject()["steps"].toArray()[step].toObject()["loss"].toDouble();
    };
    QVERIFY(lossOf(2, 0) < lossOf(0, 2));  // the third continues after the first
  }

  void aKilledRankIsNamedWithItsShape() {
    QTemporaryDir folder;
    // The ranks read their plans from a folder in TMPDIR.
    Program run({CLEAVE_BIN_DIR "/cleave-cli", "run", makeBigModel(folder.path()), "--ranks", "2", "--shapes",
                 "1x512,1x256", "--backend", "gloo", "--no-check", "--skip-weights", "--json", "-"},
                {{"TMPDIR", folder.path()}});
    const auto ranks = [&] { return ranksBelow(folder.path()); };
    QVERIFY(waitUntil([&] { return ranks().size() == 2; }));
    ::kill(static_cast<pid_t>(ranks().back()), SIGKILL);
    QCOMPARE(run.exitCode(), 5);
    QVERIFY2(run.err().contains(QRegularExpression("batch 1, sequence (512|256): Rank \\d was killed by signal 9")),
             qPrintable(run.err()));
    const QJsonObject runs = QJsonDocument::fromJson(run.out().toUtf8()).object();
    QCOMPARE(runs["passed"], QJsonValue(false));
    QVERIFY(runs["runs"].toArray().last()["report"]["first_failure"].isObject());
    QVERIFY(waitUntil([&] { return ranks().empty(); }));
  }

  void theTextHasEachShape() {
    const Finished run = cli(QStringList{"run", family("llama"), "--ranks", "2", "--shapes", "1x8,1x12"} + kSplit);
    QCOMPARE(run.exitCode, 0);
    QVERIFY2(run.out.contains("batch 1, sequence 12\nrank 0: 0 B of weights read"), run.out.constData());
    QCOMPARE(run.out.count("passed: LlamaForCausalLM on 2 ranks"), 2);
  }

  void refusesWhatCannotBe_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* says, const QStringList& arguments) { QTest::newRow(says) << arguments << says; };
    const QString llama = family("llama");
    row("--pad-to-planned pads the shapes of --shapes: add them.", {llama, "--pad-to-planned"});
    row("write BATCHxSEQUENCE, several separated by commas", {llama, "--shapes", "16"});
    row("attends to all tokens, including padding",
        {family("bert-no-mask"), "--shapes", "2x16,1x8", "--pad-to-planned"});
    row("has other values at that shape", {family("llama-dynamic-rope"), "--shapes", "1x64,1x8", "--pad-to-planned"});
    row("--logits-to-keep would keep the logits of the padding",
        {llama, "--logits-to-keep", "1", "--loss", "off", "--shapes", "1x16,1x8", "--pad-to-planned"});
    row("batch 3, sequence 8: --batch is 3, not divisible by 2 replicas.",
        {llama, "--mesh", "dp=2,tp=1", "--shapes", "2x8,3x8"});
  }
  void refusesWhatCannotBe() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, says);
    const Finished run = cli(QStringList{"run"} + arguments);
    QCOMPARE(run.exitCode, 2);
    QVERIFY2(run.err.contains(says.toUtf8()), run.err.constData());
    QVERIFY2(!run.out.contains("passed"), "a shape ran although a later one cannot");
  }
};

QTEST_GUILESS_MAIN(TestCliShapes)
#include "tst_cli_shapes.moc"
