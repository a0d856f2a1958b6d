/// `train` on real ranks, compared with transformers and torch.optim on the same models.
#include "tests/support/cli_json.h"
#include "tests/support/rows.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <functional>

using namespace cleave::test;

namespace {

QJsonObject report(const QStringList& arguments) { return json(QStringList{"train"} + arguments + kSplit); }

QStringList onRanks(int ranks) { return {"--ranks", QString::number(ranks)}; }

QByteArray refusal(const QStringList& arguments, int exitCode) {
  const Finished run = cli(QStringList{"train"} + arguments);
  if (run.exitCode != exitCode) qFatal("exit code %d: %s", run.exitCode, run.err.constData());
  return run.err.trimmed();
}

/// Adds an operator to the rank program that scales a parameter by `factor` wherever it is read.
bool scaleParameter(QJsonObject& plan, const QString& name, double factor) {
  QJsonObject program = plan["program"].toObject();
  QJsonArray nodes = program["nodes"].toArray(), ops = program["ops"].toArray(), outputs = program["outputs"].toArray();
  int values = 0, value = -1;
  qsizetype at = -1;
  for (qsizetype i = 0; i < nodes.size(); ++i) {
    const QJsonArray made = nodes[i].toObject()["out"].toArray();
    if (made.size() == 1 && made[0].toArray()[0].toString() == name) value = values, at = i;
    values += static_cast<int>(made.size());
  }
  if (value < 0) return false;
  const std::function<QJsonValue(const QJsonValue&)> moved = [&](const QJsonValue& argument) -> QJsonValue {
    if (!argument.isObject()) return argument;
    QJsonObject object = argument.toObject();
    const auto next = [&](int read) { return read == value ? value + 1 : read > value ? read + 1 : read; };
    if (object.contains("v")) object["v"] = next(object["v"].toInt());
    QJsonArray several = object.value("vs").toArray();
    for (QJsonValueRef each : several)
      if (each.isDouble()) each = next(each.toInt());
    if (!several.isEmpty()) object["vs"] = several;
    return object;
  };
  for (QJsonValueRef node : nodes) {
    QJsonObject object = node.toObject();
    QJsonArray arguments = object.value("args").toArray();
    for (QJsonValueRef argument : arguments) argument = moved(argument);
    if (!arguments.isEmpty()) object["args"] = arguments;
    node = object;
  }
  const QJsonObject parameter = nodes[at].toObject();
  const QString type = parameter["out"].toArray()[0].toArray()[1].toString();
  ops.append("aten::mul.Scalar");
  nodes.insert(at + 1, QJsonObject{{"op", ops.size() - 1},
                                   {"args", QJsonArray{QJsonObject{{"v", value}}, QJsonObject{{"f", factor}}}},
                                   {"out", QJsonArray{QJsonArray{name + ".scaled", type}}},
                                   {"scope", parameter["scope"]}});
  for (QJsonValueRef output : outputs) {
    QJsonArray pair = output.toArray();
    if (pair[1].toInt() > value) pair[1] = pair[1].toInt() + 1;
    output = pair;
  }
  program["nodes"] = nodes, program["ops"] = ops, program["outputs"] = outputs;
  plan["program"] = program;
  for (const char* list : {"collectives", "backward"}) {
    QJsonArray entries = plan[QLatin1String(list)].toArray();
    for (QJsonValueRef entry : entries) {
      QJsonObject object = entry.toObject();
      if (object.value("node").toInt(-1) > at) object["node"] = object["node"].toInt() + 1;
      entry = object;
    }
    plan[QLatin1String(list)] = entries;
  }
  return true;
}

}  // namespace

class TestCliTrain : public QObject {
  Q_OBJECT
 private slots:
  /// The dropped elements do not depend on the split, so dropout does not hide a faulty split.
  void dropsTheSameHoweverItIsSplit_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("sequence");
    for (const char* name : {"with-dropout", "with-dropout-decomposed"}) {
      for (int ranks : {2, 4}) {
        for (const char* sequence : {"off", "on"})
          QTest::addRow("%s on %d, sequence %s", name, ranks, sequence) << name << ranks << sequence;
      }
    }
  }
  void dropsTheSameHoweverItIsSplit() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(QString, sequence);
    const QString program = QStringLiteral(CLEAVE_TEST_DATA "/exported/%1.pt2").arg(name);
    const QTemporaryDir folder;
    const QStringList steps{"--steps", "4", "--lr", "0.001", "--accumulate", "2"};
    const QJsonObject run = report(QStringList{program, "--sequence-parallel", sequence} + onRanks(ranks) + steps);
    QVERIFY(run["passed"].toBool());
    const QJsonValue collectives = run["ranks"].toArray().at(0)["collectives"];
    QVERIFY(collectives["all_reduce"].toInt() + collectives["reduce_scatter"].toInt() > 0);
    // Each step and each seed drop other elements.
    const QJsonObject other = report(QStringList{program, "--seed", "5", "--no-check"} + onRanks(ranks) + steps);
    const auto firstLoss = [](const QJsonObject& of) {
      return of["training"]["steps"].toArray().at(0)["loss"].toDouble();
    };
    QVERIFY(std::abs(firstLoss(run) - firstLoss(other)) > 1e-3);
  }

  void trainsAsTransformersDoes_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("sequence");
    for (const char* name : {"llama", "gpt2", "mixtral", "gemma2"}) {
      for (int ranks : {1, 2, 4}) {
        QTest::addRow("%s on %d", name, ranks) << name << ranks << "off";
        if (ranks > 1) QTest::addRow("%s on %d, on the sequence", name, ranks) << name << ranks << "on";
      }
    }
    for (const char* name : {"llama", "gpt2", "mixtral", "gemma2"})
      QTest::addRow("%s on 2, blocks run again", name) << name << 2 << "off again";
    QTest::newRow("llama on 4, on the sequence, blocks run again") << "llama" << 4 << "on again";
    QTest::newRow("rows of padding get no gradient") << "roberta-no-mask" << 2 << "off";
    QTest::newRow("one head for keys, in a fused layer") << "falcon" << 4 << "off";
    for (const char* name : {"llama-loss.pt2", "gpt2-loss.pt2"}) {
      for (int ranks : {1, 2, 4}) QTest::addRow("%s on %d", name, ranks) << name << ranks << "off";
    }
  }
  void trainsAsTransformersDoes() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(QString, sequence);
    const bool isProgram = name.endsWith(".pt2");
    const QString model = isProgram ? training(name) : family(name);
    const QString expected = training(QString(name).remove(".pt2") + ".safetensors");
    const QStringList words = sequence.split(' ');
    const QStringList again = words.size() > 1 ? QStringList{"--checkpoint-activations"} : QStringList();
    const QJsonObject run = report(QStringList{model, "--sequence-parallel", words[0], "--expect", expected} +
                                   onRanks(ranks) + kAsExpected + again);
    QVERIFY(run["passed"].toBool());
    const auto compared = run["outputs"].toArray();
    QCOMPARE(compared[0]["name"].toString(), "losses");
    QVERIFY2(compared.size() > 15, qPrintable(QString::number(compared.size())));
    qint64 undetermined = 0, elements = 0;
    for (const QJsonValue& output : compared) {
      undetermined += output["undetermined"].toInteger();
      ++elements;
    }
    QVERIFY(undetermined < 200 * elements);
    const auto steps = run["training"]["steps"].toArray();
    QCOMPARE(steps.size(), 5);
    QVERIFY(steps[4]["loss"].toDouble() < steps[0]["loss"].toDouble());
    QVERIFY(steps[0]["gradient_norm"].toDouble() > 1);  // clipping had an effect
    QVERIFY(run["violations"].toArray().isEmpty());
  }

  void losesNothingWhereAStepIsMadeOfMicroBatches() {
    // Two batches of one row each equal one batch of both, because the rows have equal numbers of labels.
    QTemporaryDir folder;
    const QString file = folder.filePath("rows.safetensors");
    const QStringList sgd{"--steps", "3", "--optimizer", "sgd", "--lr", "0.1"};
    const Finished whole = cli(QStringList{"train", family("llama"), "--batch", "2", "--seq", "12", "--ranks", "2",
                                           "--no-check", "--output", file} +
                               sgd + kSplit);
    QCOMPARE(whole.exitCode, 0);
    QVERIFY(QFile::exists(file));
    const QJsonObject halves =
        report(QStringList{family("llama"), "--batch", "1", "--seq", "12", "--ranks", "2", "--accumulate", "2"} + sgd);
    QVERIFY(halves["passed"].toBool());  // the ranks as one process
    QCOMPARE(halves["training"]["accumulate"].toInt(), 2);
  }

  /// The comparison's records of each step do not count towards a rank's peak memory.
  void peakMemoryIsPredictedDuringTheComparison() {
    const QJsonObject run =
        report(QStringList{CLEAVE_SOURCE_DIR "/resources/models/tiny-llama", "--seq", "16"} + onRanks(2) + kAsExpected);
    QVERIFY(run["passed"].toBool());
    const QJsonArray ranks = run["ranks"].toArray(), memory = run["memory"].toArray();
    QCOMPARE(ranks.size(), 2);
    for (qsizetype rank = 0; rank < ranks.size(); ++rank) {
      const double most = ranks[rank].toObject()["peak_memory"].toDouble();
      const double predicted = memory[rank].toObject()["peak"].toObject()["predicted"].toDouble();
      QVERIFY2(most <= 1.01 * predicted, qPrintable(QString("%1, but %2 predicted").arg(most).arg(predicted)));
    }
  }

  /// A wrong gradient fails even if it is small.
  void aWrongGradientThatIsSmallFails() {
    const QTemporaryDir folder;
    const QString good = folder.filePath("good.json"), bad = folder.filePath("bad.json");
    const QStringList made{"plan", family("opt"), "--train", "--json", good};
    QVERIFY(cli(made + onRanks(2) + kSplit).exitCode == 0);
    QFile file(good);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QJsonObject plan = QJsonDocument::fromJson(file.readAll()).object();
    QVERIFY(scaleParameter(plan, "model.decoder.layers.0.fc1.bias", 1e-4));
    QFile out(bad);
    QVERIFY(out.open(QIODevice::WriteOnly) && out.write(QJsonDocument(plan).toJson()) > 0);
    out.close();
    const QStringList steps{"--steps", "1", "--skip-weights"};
    QCOMPARE(cli(QStringList{"train", good} + steps).exitCode, 0);
    const Finished run = cli(QStringList{"train", bad} + steps);
    QVERIFY2(run.exitCode == 1, run.err.constData());
    QVERIFY2(run.out.contains("fc1.bias"), run.out.constData());
    QVERIFY2(run.out.contains("--optimizer sgd --lr 1."), run.out.constData());
  }

  void readsSeveralBatchesFromOneFile() {
    const QStringList sgd{"--steps", "2", "--optimizer", "momentum", "--lr", "0.05"};
    const QString rows = family("llama") + "/expected.safetensors";  // two rows
    const QJsonObject run = report(QStringList{family("llama"), "--batch", "1", "--seq", "12", "--input", rows,
                                               "--accumulate", "2", "--ranks", "2"} +
                                   sgd);
    QVERIFY(run["passed"].toBool());
    QCOMPARE(run["training"]["optimizer"].toString(), "momentum");
  }

  void writesLossesAndParameters() {
    QTemporaryDir folder;
    const QString file = folder.filePath("trained.safetensors"), again = folder.filePath("again.safetensors");
    const QStringList asked{"--steps", "2", "--optimizer", "sgd", "--lr", "0.1"};
    const QStringList run{"train", family("llama"), "--ranks", "2", "--seed", "7"};
    QCOMPARE(cli(run + asked + kSplit + QStringList{"--no-check", "--output", file}).exitCode, 0);
    // Another number of ranks gives the written values. Another learning rate does not.
    const QStringList expect{"--expect", file, "--batch", "1", "--seq", "128"};
    const QStringList other{"train", family("llama"), "--ranks", "4", "--seed", "7"};
    QCOMPARE(cli(other + asked + kSplit + expect).exitCode, 0);
    const Finished wrong =
        cli(other + kSplit + expect + QStringList{"--steps", "2", "--optimizer", "sgd", "--lr", "0.2"});
    QCOMPARE(wrong.exitCode, 1);
    QVERIFY(wrong.out.contains("DIFFERENT"));
  }

  void trainsFromAPlanForTraining() {
    QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json"), forward = folder.filePath("forward.json");
    const QStringList make{"plan", family("gpt2"), "--ranks", "2", "--seq", "16"};
    QCOMPARE(cli(make + kSplit + QStringList{"--train", "--optimizer", "sgd", "--json", plan}).exitCode, 0);
    QCOMPARE(cli(make + kSplit + QStringList{"--json", forward}).exitCode, 0);
    const QJsonObject run = json({"train", plan, "--steps", "2", "--lr", "0.1"});
    QVERIFY(run["passed"].toBool());
    QCOMPARE(run["training"]["optimizer"].toString(), "sgd");
    const QByteArray refused = refusal({forward, "--steps", "2"}, 3);
    QVERIFY2(refused.contains("Plan again with --train"), refused.constData());
  }

  void explainsAGradient_data() {
    const Rows<QString, QString, QString> row("value", "sequence", "says");
    row("split", "model.layers.0.self_attn.q_proj.weight", "off",
        "Each rank has its own part, and the gradient of that part.");
    row("whole, same work", "model.norm.weight", "off", "nothing is added up");
    row("whole, different work", "mul_1", "off", "and an all_reduce of 16 KiB adds them up");
    row("a parameter on the sequence", "model.norm.weight", "on", "added up over 2 ranks at the end of the step");
    row("gathered from the sequence", "mul_1", "on", "a reduce_scatter of 16 KiB adds up");
    row("no gradient", "input_ids", "off", "It has no gradient");
  }
  void explainsAGradient() {
    QFETCH(QString, value);
    QFETCH(QString, sequence);
    QFETCH(QString, says);
    const QStringList asked{"explain", family("llama"),       "--ranks", "2", "--train", "--value",
                            value,     "--sequence-parallel", sequence};
    const Finished done = cli(asked + kSplit);
    QCOMPARE(done.exitCode, 0);
    QVERIFY2(done.out.contains(says.toUtf8()), done.out.constData());
    QVERIFY(!cli(QStringList(asked).filter(QRegularExpression("^(?!--train$)")) + kSplit).out.contains("gradient:"));
  }

  void refusesWhatCannotBeTrained_data() {
    const Rows<QStringList, int, QString> row("arguments", "exitCode", "says");
    const QStringList llama{family("llama"), "--ranks", "2"};
    row("no loss", llama + QStringList{"--loss", "off", "--steps", "1"}, 3, "no loss for training");
    row("no optimizer", llama + QStringList{"--steps", "1", "--optimizer", "none"}, 2, "needs an --optimizer");
    row("no steps", llama + QStringList{"--lr", "0.1"}, 2, "--steps");
    row("a rate of nothing", llama + QStringList{"--steps", "1", "--lr", "0"}, 2, "--lr is 0");
    row("no rate", llama + QStringList{"--steps", "1", "--lr", "nan"}, 2, "--lr is nan");
    row("decay below 0", llama + QStringList{"--steps", "1", "--weight-decay=-1"}, 2, "--weight-decay is -1");
    row("a norm of 0", llama + QStringList{"--steps", "1", "--clip-norm", "0"}, 2, "--clip-norm is 0");
    row("no micro-batch", llama + QStringList{"--steps", "1", "--accumulate", "0"}, 2, "--accumulate is 0");
    row("nothing to expect", llama + QStringList{"--steps", "1", "--expect", family("llama") + "/expected.safetensors"},
        3, "no training results");
    row("other steps", llama + QStringList{"--steps", "4", "--expect", training("llama.safetensors")}, 3,
        "losses has shape [5]");
  }
  void refusesWhatCannotBeTrained() {
    QFETCH(QStringList, arguments);
    QFETCH(int, exitCode);
    QFETCH(QString, says);
    const QByteArray refused = refusal(arguments, exitCode);
    QVERIFY2(refused.contains(says.toUtf8()), refused.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliTrain)
#include "tst_cli_train.moc"
