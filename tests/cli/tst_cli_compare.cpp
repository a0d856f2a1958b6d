/// The comparison of a run: expectations that are met, that are not met, that are of another model, and that any
/// output would meet.
#include "tests/support/cli_json.h"
#include "tests/support/safetensors_edit.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace cleave::test;

namespace {

QJsonObject report(const QStringList& arguments) { return json(QStringList{"run"} + arguments); }

/// Runs llama with an altered expected.safetensors as the argument of `flag`.
Finished runWith(const QString& flag, const Alteration& alter) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("altered.safetensors");
  writeAltered(model("llama") + "/expected.safetensors", file, alter);
  return cli({"run", model("llama"), "--ranks", "2", "--backend", "gloo", flag, file});
}

QJsonObject readJson(const QString& file) { return QJsonDocument::fromJson(readBytes(file)).object(); }

}  // namespace

class TestCliCompare : public QObject {
  Q_OBJECT
 private slots:
  /// Replicated weights are on every rank, and rank 0 writes the outputs. The outputs of other ranks count too.
  void alteredWeightsOnAnotherRankAreFound() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", model("llama"), "--ranks", "2", "--batch", "2", "--seq", "16", "--engine", "reference",
                  "--pin", "lm_head=replicated", "--json", file})
                 .exitCode,
             0);
    const QStringList run{file, "--backend", "gloo", "--expect", model("llama") + "/expected.safetensors"};
    QVERIFY(report(run)["passed"].toBool());

    QJsonObject json = readJson(file);
    QJsonArray parameters = json["parameters"].toArray();
    const auto named = [&](const char* name) {
      return std::find_if(parameters.begin(), parameters.end(),
                          [&](const QJsonValue& p) { return p["name"].toString() == QLatin1String(name); });
    };
    const QJsonObject other = named("model.embed_tokens.weight")->toObject()["pieces"].toArray()[0].toObject();
    QJsonObject head = named("lm_head.weight")->toObject();
    QJsonArray pieces = head["pieces"].toArray();
    QCOMPARE(pieces.size(), 2);
    QJsonObject piece = pieces[1].toObject();
    QCOMPARE(piece["rank"].toInt(), 1);
    for (const char* key : {"tensor", "file"}) piece[QLatin1String(key)] = other[QLatin1String(key)];
    pieces[1] = piece;
    head["pieces"] = pieces;
    *named("lm_head.weight") = head;
    json["parameters"] = parameters;
    writeBytes(file, QJsonDocument(json).toJson());
    const Finished done = cli(QStringList{"run"} + run + QStringList{"--json", "-"});
    QVERIFY2(done.exitCode == 1, qPrintable(done.err));
    const QJsonObject failed = QJsonDocument::fromJson(done.out).object();
    QVERIFY(failed["passed"].isBool() && !failed["passed"].toBool());
    QStringList different;
    for (const QJsonValue& output : failed["outputs"].toArray()) {
      if (!output["within"].toBool())
        different << QStringLiteral("%1 of %2").arg(output["name"].toString()).arg(output["rank"].toInt());
    }
    QVERIFY2(different.contains("logits of 1") && !different.contains("logits of 0"), qPrintable(different.join(", ")));
  }

  void whatIsNotCheckedIsNotCalledPassed() {
    const QStringList run{"run", model("llama"), "--ranks", "2", "--backend", "gloo", "--seq", "8", "--no-check"};
    const Finished json = cli(run + QStringList{"--json", "-"});
    QCOMPARE(json.exitCode, 0);
    const QJsonObject report = QJsonDocument::fromJson(json.out).object();
    QVERIFY(report.contains("passed") && report["passed"].isNull() && report["compared_with"].isNull());
    const Finished words = cli(run);
    QVERIFY2(words.out.contains("\nnot checked: ") && !words.out.contains("passed"), words.out.constData());
    const QJsonObject shapes =
        QJsonDocument::fromJson(cli(run + QStringList{"--shapes", "1x8", "--json", "-"}).out).object();
    QVERIFY(shapes.contains("passed") && shapes["passed"].isNull());
  }

  /// A file with one expected value that is missing, or that any output would meet.
  void expectationsThatHoldOfAnythingAreNotMet_data() {
    QTest::addColumn<Alteration>("alter");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("phrase");
    const auto row = [](const char* name, Alteration alter, int code, const char* phrase) {
      QTest::newRow(name) << alter << code << QByteArray(phrase);
    };
    row(
        "as it was", [](QJsonObject&, QByteArray&) {}, 0, " % of the tolerance: equal\n");
    row("one infinity", withNumber("logits", 5, HUGE_VALF), 1, "logits: largest difference");
    row("one NaN", withNumber("logits", 5, std::nanf("")), 1, "1 element is NaN");
    row("another number", withNumber("logits", 8191, 1e3f), 1, "DIFFERENT, 1 element outside the tolerance");
    row("another loss", withNumber("loss", 0, 1e3f), 1, "loss: largest difference");
    const auto reshaped = [](QJsonObject& header, QByteArray&) {
      QJsonObject logits = header["logits"].toObject();
      const QJsonArray shape = logits["shape"].toArray();
      logits["shape"] = QJsonArray{shape[1], shape[0], shape[2]};
      header["logits"] = logits;
    };
    row("another shape of as many elements", reshaped, 3,
        "logits has shape [16, 2, 256], but the run computes [2, 16, 256]");
    for (const char* name : {"logits", "loss"}) {
      QTest::addRow("no %s", name) << renamed(name, "something_else") << 3 << QByteArray("has no tensor ") + name;
    }
  }
  void expectationsThatHoldOfAnythingAreNotMet() {
    QFETCH(Alteration, alter);
    QFETCH(int, code);
    QFETCH(QByteArray, phrase);
    const Finished done = runWith("--expect", alter);
    QCOMPARE(done.exitCode, code);
    QVERIFY2((done.out + done.err).contains(phrase), (done.out + done.err).constData());
    QCOMPARE(done.out.contains("\npassed: "), code == 0);
    QCOMPARE(done.out.contains("\nFAILED: "), code == 1);
  }

  /// Tensors such as own positions, or a mistyped name.
  void whatIsGivenAndNotUsedIsNamed_data() {
    QTest::addColumn<Alteration>("alter");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("all used") << renamed("labels", "labels") << QByteArray();
    QTest::newRow("positions")
        << renamed("labels", "position_ids")
        << QByteArray(
               " also has loss, position_ids. This plan has no such input, so the run does not use "
               "them.");
  }
  void whatIsGivenAndNotUsedIsNamed() {
    QFETCH(Alteration, alter);
    QFETCH(QByteArray, phrase);
    const Finished done = runWith("--input", alter);
    QCOMPARE(done.exitCode, 0);
    QVERIFY2(done.out.contains(phrase), done.out.constData());
    QCOMPARE(done.out.contains(" also has "), !phrase.isEmpty());
  }

  /// A loss without labels, or another tensor, cannot be compared.
  void whatIsExpectedAndNotComputedIsNamed_data() {
    QTest::addColumn<Alteration>("alter");
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("a loss without labels")
        << renamed("labels", "lables") << QStringList() << 3 << QByteArray(" has a loss, but ");
    QTest::newRow("a loss that is left out")
        << renamed("labels", "labels") << QStringList{"--loss", "off"} << 0
        << QByteArray("Not compared: loss of expected.safetensors, because this run does not compute it.");
    QTest::newRow("another tensor") << renamed("labels", "hidden") << QStringList{"--loss", "off"} << 0
                                    << QByteArray("Not compared: hidden of ");
    QTest::newRow("all computed") << renamed("labels", "labels") << QStringList() << 0 << QByteArray("passed: ");
  }
  void whatIsExpectedAndNotComputedIsNamed() {
    QFETCH(Alteration, alter);
    QFETCH(QStringList, flags);
    QFETCH(int, code);
    QFETCH(QByteArray, phrase);
    QTemporaryDir folder;
    const QString file = folder.filePath("expected.safetensors");
    writeAltered(model("llama") + "/expected.safetensors", file, alter);
    const QStringList run{"--backend", "gloo", "--expect", file};
    const Finished done = cli(QStringList{"run", model("llama"), "--engine", "reference"} + run + flags);
    QVERIFY2(done.exitCode == code, done.err.constData());
    const QByteArray said = done.out + done.err;
    QVERIFY2(said.contains(phrase), said.constData());
    QCOMPARE(said.contains("Not compared: "), phrase.startsWith("Not compared: "));
    if (!flags.isEmpty()) return;
    const QString plan = folder.filePath("plan.json");
    QCOMPARE(
        cli({"plan", model("llama"), "--batch", "2", "--seq", "16", "--engine", "reference", "--json", plan}).exitCode,
        0);
    QCOMPARE(cli(QStringList{"run", plan} + run).exitCode, code);
  }

  /// The error is in the file, not in a flag.
  void inputsThatCannotBeCapturedAreBadInput_data() {
    QTest::addColumn<int>("batch");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("no batch") << 0 << 16 << QStringList() << QByteArray("batch is 0");
    QTest::newRow("no sequence") << 2 << 0 << QStringList() << QByteArray("sequence length is 0");
    QTest::newRow("too short for the loss")
        << 2 << 1 << QStringList() << QByteArray("the loss compares each position with the next");
    QTest::newRow("short without the loss") << 2 << 1 << QStringList{"--loss", "off"} << QByteArray();
  }
  void inputsThatCannotBeCapturedAreBadInput() {
    QFETCH(int, batch);
    QFETCH(int, sequence);
    QFETCH(QStringList, flags);
    QFETCH(QByteArray, phrase);
    QTemporaryDir folder;
    const QString file = folder.filePath("inputs.safetensors"), plan = folder.filePath("plan.json");
    writeAltered(model("llama") + "/expected.safetensors", file, [&](QJsonObject& header, QByteArray& data) {
      const int bytes = batch * sequence * 8;
      const auto ids = [&](int start) {
        return QJsonObject{{"dtype", "I64"},
                           {"shape", QJsonArray{batch, sequence}},
                           {"data_offsets", QJsonArray{start, start + bytes}}};
      };
      header = QJsonObject{{"input_ids", ids(0)}, {"labels", ids(bytes)}};
      data = data.first(2 * bytes);
    });
    QCOMPARE(cli(QStringList{"plan", model("llama"), "--batch", "2", "--seq", "16", "--engine", "reference", "--json",
                             plan} +
                 flags)
                 .exitCode,
             0);
    for (const QStringList& run :
         {QStringList{"run", model("llama"), "--engine", "reference"} + flags, QStringList{"run", plan}}) {
      const Finished done = cli(run + QStringList{"--backend", "gloo", "--input", file});
      QVERIFY2(done.exitCode == (phrase.isEmpty() ? 0 : 3), done.err.constData());
      QVERIFY2(phrase.isEmpty() || (done.err.contains(phrase) && done.err.contains(file.toUtf8())),
               done.err.constData());
    }
  }

  /// A script that reads the figures must not see a difference of 0.
  void figuresOfAFailedComparisonAreNotZero_data() {
    QTest::addColumn<float>("number");
    QTest::newRow("infinity") << HUGE_VALF;
    QTest::newRow("NaN") << std::nanf("");
  }
  void figuresOfAFailedComparisonAreNotZero() {
    QFETCH(float, number);
    QTemporaryDir folder;
    const QString file = folder.filePath("expected.safetensors");
    writeAltered(model("llama") + "/expected.safetensors", file, withNumber("logits", 5, number));
    const Finished done =
        cli({"run", model("llama"), "--engine", "reference", "--backend", "gloo", "--expect", file, "--json", "-"});
    QCOMPARE(done.exitCode, 1);
    const QJsonObject logits = QJsonDocument::fromJson(done.out).object()["outputs"].toArray()[0].toObject();
    QCOMPARE(logits["name"].toString(), QString("logits"));
    QVERIFY(logits.contains("max_abs_diff") && logits["max_abs_diff"].isNull() && logits["max_rel_diff"].isNull());
  }

  /// The alternatives that the refusal of an incomplete file names.
  void anIncompleteExpectationCanBeComparedOtherwise() {
    QTemporaryDir folder;
    const QString file = folder.filePath("expected.safetensors");
    writeAltered(model("llama") + "/expected.safetensors", file, renamed("loss", "something_else"));
    const QStringList run{model("llama"), "--ranks", "2", "--backend", "gloo"};
    QVERIFY(report(run + QStringList{"--expect", file, "--loss", "off"})["passed"].toBool());
    const QJsonObject unsplit = report(run + QStringList{"--input", file});
    QVERIFY(unsplit["passed"].toBool());
    QCOMPARE(unsplit["compared_with"].toString(), QString("an unsplit run"));
  }

  void tolerancesThatHoldOfAnythingAreRefused_data() {
    QTest::addColumn<QStringList>("flags");
    QTest::newRow("infinite") << QStringList{"--rtol", "inf"};
    QTest::newRow("below 0") << QStringList{"--atol=-1"};
    QTest::newRow("no number") << QStringList{"--atol", "nan"};
  }
  void tolerancesThatHoldOfAnythingAreRefused() {
    QFETCH(QStringList, flags);
    const Finished done =
        cli(QStringList{"run", model("llama"), "--ranks", "2", "--expect", model("llama") + "/expected.safetensors"} +
            flags);
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains(": write a finite number from 0."), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliCompare)
#include "tst_cli_compare.moc"
