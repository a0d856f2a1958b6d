/// `--dropout on`: folders train with the dropout of their config.json, on real ranks.
#include "tests/support/cli_json.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

const QStringList kSteps{"--steps", "3", "--lr", "0.001"};
const QStringList kOn{"--dropout", "on"};

/// One of tests/data/families with other values in its config.
class Folder {
 public:
  Folder(const QString& family, const QJsonObject& changes) {
    const QDir from(QStringLiteral(CLEAVE_TEST_DATA "/families/") + family);
    QFile::link(from.filePath("model.safetensors"), m_folder.filePath("model.safetensors"));
    QFile given(from.filePath("config.json"));
    QFile changed(m_folder.filePath("config.json"));
    if (!given.open(QIODevice::ReadOnly) || !changed.open(QIODevice::WriteOnly)) qFatal("no config");
    QJsonObject config = QJsonDocument::fromJson(given.readAll()).object();
    for (auto change = changes.begin(); change != changes.end(); ++change) config[change.key()] = change.value();
    changed.write(QJsonDocument(config).toJson());
  }
  QString path() const { return m_folder.path(); }
  QString file(const char* name) const { return m_folder.filePath(name); }

 private:
  QTemporaryDir m_folder;
};

/// Every dropout key of the family.
QJsonObject someOf(const QString& family) {
  if (family == "gpt2") return {{"attn_pdrop", 0.1}, {"resid_pdrop", 0.2}, {"embd_pdrop", 0.1}};
  if (family == "opt") return {{"attention_dropout", 0.1}, {"dropout", 0.2}};
  if (family == "falcon-rw") return {{"attention_dropout", 0.1}, {"hidden_dropout", 0.2}};
  if (family == "falcon") return {{"hidden_dropout", 0.2}};
  if (family.startsWith("bert"))
    return {{"attention_probs_dropout_prob", 0.1}, {"hidden_dropout_prob", 0.2}, {"classifier_dropout", 0.3}};
  return {{"attention_dropout", 0.2}};
}

QStringList onRanks(int ranks) { return {"--ranks", QString::number(ranks)}; }

QJsonObject trained(const QStringList& arguments) { return json(QStringList{"train"} + arguments + kSplit + kSteps); }

void replaceIn(const QString& path, const QByteArray& before, const QByteArray& after) {
  QFile file(path);
  if (!file.open(QIODevice::ReadWrite)) qFatal("no file");
  QByteArray text = file.readAll();
  if (!text.contains(before)) qFatal("the file has no %s", before.constData());
  file.resize(0);
  file.seek(0);
  file.write(text.replace(before, after));
}

/// The losses as in the JSON, with every bit.
QByteArray lossesOf(const QJsonObject& run) {
  QJsonArray losses;
  for (const QJsonValue& step : run["training"]["steps"].toArray()) losses.append(step["loss"]);
  return losses.size() == 3 ? QJsonDocument(losses).toJson() : QByteArray("no losses");
}

QByteArray refusal(const QStringList& arguments, int exitCode) {
  const Finished run = cli(arguments);
  if (run.exitCode != exitCode) qFatal("exit code %d: %s", run.exitCode, run.err.constData());
  return run.err.trimmed();
}

}  // namespace

class TestCliDropout : public QObject {
  Q_OBJECT
 private slots:
  void dropsTheSameHoweverItIsSplit_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("sequence");
    QTest::addColumn<bool>("again");
    const auto add = [](const char* family, int ranks, const char* sequence, bool again) {
      QTest::addRow("%s on %d, sequence %s%s", family, ranks, sequence, again ? ", blocks run again" : "")
          << family << ranks << sequence << again;
    };
    for (const bool again : {false, true}) {
      add("gpt2", 1, "off", again);
      for (const int ranks : {2, 4}) {
        for (const char* sequence : {"off", "on"}) add("gpt2", ranks, sequence, again);
      }
      for (const char* family : {"llama", "opt", "falcon-rw", "falcon", "bert-classification", "gemma2", "gpt_oss"})
        add(family, again ? 4 : 2, again ? "on" : "off", again);
    }
  }
  void dropsTheSameHoweverItIsSplit() {
    QFETCH(QString, family);
    QFETCH(int, ranks);
    QFETCH(QString, sequence);
    QFETCH(bool, again);
    const Folder folder(family, someOf(family));
    const QStringList words = QStringList{folder.path(), "--batch", "2", "--seq", "16"} + onRanks(ranks) +
                              QStringList{"--sequence-parallel", sequence} +
                              (again ? QStringList{"--checkpoint-activations"} : QStringList());
    const QJsonObject run = trained(words + kOn);
    QVERIFY(run["passed"].toBool());
    QVERIFY(run["violations"].toArray().isEmpty());
    if (ranks == 1) return;
    const QJsonValue collectives = run["ranks"].toArray().at(0)["collectives"];
    QVERIFY(collectives["all_reduce"].toInt() + collectives["reduce_scatter"].toInt() > 0);
  }

  /// Each replica drops the same elements of its rows as an unsplit run. Micro-batches drop different elements.
  void dropsTheSameInReplicas() {
    const Folder folder("gpt2", someOf("gpt2"));
    const QJsonObject run = trained(
        QStringList{folder.path(), "--mesh", "dp=2,tp=2", "--batch", "4", "--seq", "16", "--accumulate", "2"} + kOn);
    QVERIFY(run["passed"].toBool());
  }

  void repeatsWhatASeedDropped() {
    const Folder folder("gpt2", someOf("gpt2"));
    const QStringList words = QStringList{folder.path(), "--no-check"} + onRanks(2);
    const QByteArray first = lossesOf(trained(words + kOn));
    QCOMPARE(lossesOf(trained(words + kOn)), first);
    QVERIFY(lossesOf(trained(words)) != first);
    // With the same batch, only the dropped elements differ.
    const QString input = QStringLiteral(CLEAVE_TEST_DATA "/families/gpt2/expected.safetensors");
    const QStringList given = words + QStringList{"--input", input} + kOn;
    const QByteArray ofSeed0 = lossesOf(trained(given));
    QVERIFY(ofSeed0 != lossesOf(trained(given + QStringList{"--seed", "7"})));
    // Parameters hardly change, but the dropped elements do.
    const QJsonObject still =
        json(QStringList{"train"} + given + kSplit + QStringList{"--steps", "2", "--optimizer", "sgd", "--lr", "1e-9"});
    const auto steps = still["training"]["steps"].toArray();
    QVERIFY(std::abs(steps.at(0)["loss"].toDouble() - steps.at(1)["loss"].toDouble()) > 1e-4);
  }

  void changesNothingWithoutAProbability() {
    const Folder folder("llama", {});
    const QStringList words = QStringList{folder.path()} + onRanks(2);
    const QJsonObject off = trained(words), on = trained(words + kOn);
    QVERIFY(off["passed"].toBool() && on["passed"].toBool());
    QCOMPARE(lossesOf(on), lossesOf(off));
    const QString sentence = "Dropout has no effect: no dropout probability in config.json is above 0.";
    QVERIFY(on["warnings"].toArray().contains(sentence));
    QVERIFY(!off["warnings"].toArray().contains(sentence));
    for (const QJsonValue& note : off["notes"].toArray()) QVERIFY(!note.toString().contains("ropout"));
  }

  void saysThatDropoutIsOff() {
    const Folder folder("gpt2", someOf("gpt2"));
    const QString sentence =
        "Dropout is off: config.json has attn_pdrop 0.1, embd_pdrop 0.1, resid_pdrop 0.2. --dropout on trains with it.";
    const QStringList words = QStringList{folder.path(), "--no-check"} + onRanks(2);
    QVERIFY(trained(words)["notes"].toArray().contains(sentence));
    QVERIFY(!trained(words + kOn)["notes"].toArray().contains(sentence));
    const Finished printed = cli(QStringList{"train"} + words + kSteps);
    QCOMPARE(printed.exitCode, 0);
    QVERIFY2(printed.out.contains(sentence.toUtf8() + "\n"), printed.out.constData());
    const Finished forward = cli(QStringList{"run"} + words);
    QVERIFY2(!forward.out.contains("Dropout"), forward.out.constData());
  }

  /// A plan file records the dropout, and a run of it applies it.
  void isWrittenIntoThePlan() {
    const Folder folder("gpt2", someOf("gpt2"));
    const QString file = folder.file("plan.json");
    const QStringList words = QStringList{folder.path()} + onRanks(2) + kSplit;
    const Finished planned = cli(QStringList{"plan"} + words + kOn + QStringList{"--train", "--json", file});
    QVERIFY2(planned.exitCode == 0, planned.err.constData());
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    const QJsonValue model = QJsonDocument::fromJson(written.readAll())["model"];
    QVERIFY(model["dropout"].toBool());
    QCOMPARE(model["dropout_probabilities"].toString(), "attn_pdrop 0.1, embd_pdrop 0.1, resid_pdrop 0.2");
    const QJsonObject ran = json(QStringList{"train", file} + kSteps);
    QVERIFY(ran["passed"].toBool());
    QCOMPARE(lossesOf(ran), lossesOf(trained(QStringList{folder.path()} + onRanks(2) + kOn)));
    // For other inputs the plan is made again, also with dropout.
    const QString input = QStringLiteral(CLEAVE_TEST_DATA "/families/gpt2/expected.safetensors");
    const QJsonObject again = json(QStringList{"train", file, "--input", input} + kSteps);
    QVERIFY(again["passed"].toBool());
    for (const QJsonValue& note : again["notes"].toArray()) QVERIFY(!note.toString().contains("Dropout is off"));
  }

  void refusesWhatCannotBe() {
    const QString folder = QStringLiteral(CLEAVE_TEST_DATA "/families/gpt2");
    const QByteArray forTraining =
        "cleave-cli: --dropout on applies to training: add --train, use cleave-cli train, or leave it out.";
    QCOMPARE(refusal({"run", folder, "--dropout", "on"}, 2), forTraining);
    QCOMPARE(refusal({"plan", folder, "--dropout", "on"}, 2), forTraining);
    QCOMPARE(refusal({"plan", folder, "--train", "--dropout", "yes"}, 2),
             QByteArray("cleave-cli: --dropout is \"yes\": write on or off."));
    const QString program = QStringLiteral(CLEAVE_TEST_DATA "/exported/with-dropout.pt2");
    const QByteArray settled = refusal({"plan", program, "--train", "--dropout", "on"}, 2);
    QVERIFY2(settled.endsWith("with-dropout.pt2 is an exported program with fixed dropout. Omit --dropout."),
             settled.constData());
    const Folder wrong("gpt2", {{"attn_pdrop", 1.5}});
    const QByteArray refused = refusal({"plan", wrong.path()}, 3);
    QVERIFY2(refused.endsWith("attn_pdrop must be a probability of at least 0 and less than 1, but it is 1.5."),
             refused.constData());
    const Folder unknown("gpt2", someOf("gpt2"));
    replaceIn(unknown.file("config.json"), "\"resid_pdrop\": 0.2", "\"resid_pdrop\": NaN");
    const QByteArray notANumber = refusal({"plan", unknown.path()}, 3);
    QVERIFY2(notANumber.endsWith("resid_pdrop is NaN, for which JSON has no number."), notANumber.constData());
    const Folder layers("opt", {{"layerdrop", 0.5}});
    const QByteArray refusedLayers = refusal({"plan", layers.path(), "--train", "--dropout", "on"}, 3);
    QVERIFY2(refusedLayers.contains("layerdrop is 0.5"), refusedLayers.constData());
    const Folder padded("gpt2", someOf("gpt2"));
    const QByteArray padding =
        refusal(QStringList{"train", padded.path(), "--shapes", "2x16,1x8", "--pad-to-planned"} + kSteps + kOn, 2);
    QVERIFY2(padding.contains("dropout drops other elements in a padded batch"), padding.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliDropout)
#include "tst_cli_dropout.moc"
