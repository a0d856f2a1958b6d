// `info`, and the refusals for quantized models.
#include "tests/support/cli_json.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

const QString kConfigs = QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/configs/");
const QString kFamilies = QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/families/");

QJsonObject info(const QString& folder) { return json({"info", folder}); }

}  // namespace

class TestCliInfo : public QObject {
  Q_OBJECT
 private slots:
  void describesAModel() {
    const Finished said = cli({"info", kConfigs + "Qwen3-30B-A3B"});
    QCOMPARE(said.exitCode, 0);
    for (const char* line :
         {"architecture   Qwen3MoeForCausalLM (qwen3_moe), causal language model", "layers         48",
          "KV heads       4", "experts        128 of 768 features, 8 per token", "parameters     30532122624 in",
          "input          attention_mask [batch, sequence], optional", "weights        none",
          "run            only with random parameters (--skip-weights)"}) {
      QVERIFY2(said.out.contains(line), line + QByteArray("\n") + said.out);
    }
  }

  void countsEachParameterOnce_data() {
    QTest::addColumn<QString>("folder");
    for (const QString& name : QDir(kFamilies).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name))
      QTest::newRow(qPrintable(name)) << kFamilies + name;
  }
  void countsEachParameterOnce() {
    QFETCH(QString, folder);
    const QJsonObject said = info(folder);
    qint64 files = 0;
    for (const QJsonValue& bytes : said["weights"].toObject()) files += bytes.toInteger();
    for (const char* list : {"by_module", "by_dtype"}) {
      qint64 parameters = 0, bytes = 0;
      for (const QJsonValue& entry : said[list].toArray()) {
        parameters += entry["parameters"].toInteger();
        bytes += entry["bytes"].toInteger();
      }
      QCOMPARE(parameters, said["parameters"].toInteger());
      QCOMPARE(bytes, said["bytes"].toInteger());
      QVERIFY(bytes <= files);
    }
    QStringList modules;
    for (const QJsonValue& entry : said["by_module"].toArray()) modules << entry["module"].toString();
    for (const char* module : {"embeddings", "attention"})  // norms may have no weights
      QVERIFY2(modules.contains(module), qPrintable(modules.join(", ")));
    QVERIFY(modules.contains("MLP") || modules.contains("experts"));
  }

  void groupsByModule() {
    const QJsonObject said = info(kConfigs + "Mixtral-8x7B");
    QMap<QString, qint64> parameters;
    for (const QJsonValue& entry : said["by_module"].toArray())
      parameters[entry["module"].toString()] = entry["parameters"].toInteger();
    const QMap<QString, qint64> expected{{"embeddings", 32000ll * 4096},
                                         {"attention", 32ll * (2 * 4096 * 4096 + 2 * 1024 * 4096)},
                                         {"experts", 32ll * 8 * 3 * 4096 * 14336},
                                         {"routers", 32ll * 8 * 4096},
                                         {"norms", 65ll * 4096},
                                         {"head", 32000ll * 4096}};
    QCOMPARE(parameters, expected);
  }

  void describesAQuantizedModel() {
    const QJsonObject said = info(kConfigs + "Llama-3.1-8B-AWQ-INT4");
    QCOMPARE(said["quantization"].toString(), QString("awq, 4 bit, groups of 128"));
    QCOMPARE(said["by_dtype"].toArray().size(), 2);
    QVERIFY(said["supported"].toObject()["run"].toString().startsWith("no: the weights are packed"));
  }

  /// transformers' Llama ignores sliding_window.
  void namesIgnoredKeys() {
    QTemporaryDir folder;
    QFile source(kFamilies + "llama/config.json");
    QVERIFY(source.open(QIODevice::ReadOnly));
    QJsonObject config = QJsonDocument::fromJson(source.readAll()).object();
    config["sliding_window"] = 16;
    config["num_experts"] = QJsonValue();
    QFile target(folder.filePath("config.json"));
    QVERIFY(target.open(QIODevice::WriteOnly));
    target.write(QJsonDocument(config).toJson());
    target.close();
    QCOMPARE(info(folder.path())["ignored_keys"].toArray(), QJsonArray{"sliding_window"});
    QVERIFY(cli({"info", folder.path()}).out.contains("ignored        sliding_window: llama models do not read it"));
  }

  /// The refusal of an unknown architecture refers to this list.
  void listsTheFamilies() {
    const Finished listed = cli({"info", "--families"});
    QCOMPARE(listed.exitCode, 0);
    const QString text = QString::fromUtf8(listed.out);
    for (const char* row : {"LlamaForCausalLM", "BertForMaskedLM", "BertForSequenceClassification"})
      QVERIFY2(text.contains(
                   QRegularExpression(QString("^%1 +(llama|bert)$").arg(row), QRegularExpression::MultilineOption)),
               qPrintable(text));
    const Finished neither = cli({"info"});
    QCOMPARE(neither.exitCode, 2);
    QVERIFY2(neither.err.contains("--families"), neither.err.constData());
  }

  /// Parameters and inputs are nodes of a graph, but not operators.
  void countsOperatorsAndNothingElse() {
    const QString archive = QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/exported/encoder-batch-first.pt2");
    const QJsonObject said = info(archive), operators = said["operators"].toObject();
    QCOMPARE(operators["captured"].toInt(), 80);
    QVERIFY(operators["aten"].toInt() >= 80);
    QCOMPARE(said["by_module"][0]["module"].toString(), QString("class unknown"));
    QVERIFY(cli({"info", archive}).out.contains("torch 2.11.0+cu130, 80 calls"));
  }

  void aClassifierAndItsLoss() {
    const QJsonObject said = info(kFamilies + "bert-classification");
    QVERIFY(said["task"].toString().startsWith("sequence classifier"));
    QVERIFY(said["inputs"].toObject().contains("token_type_ids"));
    QCOMPARE(said["supported"].toObject()["generation"].toString(), QString("no: each token attends to all tokens"));
  }

  void aQuantizedModelIsPlannedAndNotRun() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json"), model = kConfigs + "Llama-3.1-8B-AWQ-INT4";
    QCOMPARE(cli({"plan", model, "--seq", "16", "--json", file}).exitCode, 0);
    const QByteArray why =
        " is quantized (awq, 4 bit, groups of 128). Cleave plans it but does not run it. Save it dequantized "
        "(model.dequantize() in transformers) and run that folder.\n";
    for (const QStringList& words :
         {QStringList{"run", model, "--seq", "16"}, {"run", file}, {"run", file, "--skip-weights", "--no-check"}}) {
      const Finished refused = cli(words);
      QCOMPARE(refused.exitCode, 3);
      QVERIFY2(refused.err.endsWith(why), refused.err);
    }
    const Finished rank = runProgram("cleave-rank", {file});
    QVERIFY(rank.exitCode != 0);
    QVERIFY2(rank.err.contains("Cleave plans it but does not run it"), rank.err);
    QCOMPARE(cli({"check", file}).exitCode, 0);
  }
};

QTEST_GUILESS_MAIN(TestCliInfo)
#include "tst_cli_info.moc"
