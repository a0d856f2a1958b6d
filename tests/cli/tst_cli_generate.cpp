/// `generate` on real ranks, compared with transformers on the same models (tests/tools/generations.py).
#include "tests/support/cli_json.h"
#include "tests/support/rows.h"
#include "tests/support/safetensors_edit.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

QString generation(const QString& name) {
  return QStringLiteral(CLEAVE_TEST_DATA "/generation/") + name + ".safetensors";
}

/// The settings of tests/tools/generations.py.
const QStringList kNew{"--tokens", "12"};

QJsonObject report(const QStringList& arguments, int exitCode = 0) {
  return json(QStringList{"generate"} + arguments + kSplit, exitCode);
}
QStringList onRanks(int ranks) { return {"--ranks", QString::number(ranks)}; }

QByteArray refusal(const QStringList& arguments, int exitCode) {
  const Finished run = cli(QStringList{"generate"} + arguments);
  if (run.exitCode != exitCode) qFatal("exit code %d: %s", run.exitCode, run.err.constData());
  return run.err.trimmed().split('\n').last();
}

/// Measured bytes of the cache per rank.
std::vector<qint64> measuredCache(const QJsonObject& run) {
  std::vector<qint64> bytes;
  for (const QJsonValue rank : run["generation"].toObject()["kv_cache"].toObject()["measured_bytes"].toArray())
    bytes.push_back(rank.toInteger());
  return bytes;
}

void verifyGenerated(const QJsonObject& run) {
  QVERIFY(run["passed"].toBool());
  QVERIFY2(run["generation"]["first_difference"].isNull(),
           qPrintable(run["generation"]["first_difference"].toString()));
  QVERIFY(run["violations"].toArray().isEmpty());
  const auto rows = run["tokens"].toArray();
  QCOMPARE(rows.size(), 2);
  const qint64 prompt = run["generation"]["prompt_tokens"].toInteger();
  for (const QJsonValue& row : rows) QCOMPARE(row.toArray().size(), prompt + 12);
  QCOMPARE(run["generation"]["decode_steps"].toInt(), 11);
  const qint64 predicted = run["generation"]["kv_cache"]["predicted_bytes"].toInteger();
  QVERIFY(predicted > 0);
  for (const qint64 bytes : measuredCache(run)) QCOMPARE(bytes, predicted);
}

}  // namespace

class TestCliGenerate : public QObject {
  Q_OBJECT
 private slots:
  void generatesAsTransformersDoes_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    for (const char* name : {"llama", "qwen2", "gemma2", "gpt2", "mixtral"}) {
      for (const int ranks : {1, 2, 4}) QTest::addRow("%s on %d", name, ranks) << name << ranks;
    }
    // Other kinds of attention and positions; tst_generator has the rest.
    for (const char* name : {"bloom", "deepseek_v3", "falcon", "gpt_oss", "mistral", "opt", "phi3"})
      QTest::addRow("%s on 2", name) << name << 2;
  }
  void generatesAsTransformersDoes() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    verifyGenerated(report(QStringList{family(name), "--expect", generation(name)} + kNew + onRanks(ranks)));
  }

  /// With --prompt, compared with an unsplit run.
  void agreesWithAnUnsplitRun_data() {
    const Rows<QString> row("path");
    for (const char* name : {"llama", "qwen2", "gpt2", "mixtral", "llama-tied"}) row(name, model(name));
    row("one head for keys and values", bundled("one-kv-head"));
    row("heads that do not divide", bundled("three-heads"));
  }
  void agreesWithAnUnsplitRun() {
    QFETCH(QString, path);
    const QJsonObject run =
        report(QStringList{path, "--prompt", "5,6,7,8,9,10,11;11,10,9,8,7,6,5", "--ignore-end-token"} + kNew +
               onRanks(2) + (path.contains("/resources/") ? QStringList{"--skip-weights"} : QStringList()));
    verifyGenerated(run);
    QCOMPARE(run["compared_with"].toString(), "an unsplit run");
  }

  void theCacheIsSplitAsTheModelIs() {
    const QStringList run{family("llama-8-heads"), "--expect", generation("llama-8-heads")};
    const auto whole = measuredCache(report(run + kNew + onRanks(1)));
    const auto half = measuredCache(report(run + kNew + onRanks(2)));
    const auto quarter = measuredCache(report(run + kNew + onRanks(4)));
    QCOMPARE(whole.size(), std::size_t{1});
    QCOMPARE(half, std::vector<qint64>(2, whole[0] / 2));
    QCOMPARE(quarter, std::vector<qint64>(4, whole[0] / 4));
  }

  /// One plan is for the prompt, the other for one token. The weights are loaded once.
  void weightsAreReadOnce() {
    const QJsonObject once =
        json(QStringList{"run", family("llama"), "--ranks", "2", "--no-check", "--loss", "off"} + kSplit);
    const QJsonObject run =
        report({family("llama"), "--prompt", "5,6,7", "--tokens", "3", "--ranks", "2", "--no-check"});
    QCOMPARE(run["passed"].toVariant(), QVariant::fromValue(nullptr));
    for (int rank = 0; rank < 2; ++rank)
      QCOMPARE(run["ranks"][rank]["bytes_read"].toInteger(), once["ranks"][rank]["bytes_read"].toInteger());
  }

  void everyEngineGenerates_data() {
    const Rows<QStringList> row("how");
    row("reference with Optimum's candidates", QStringList{"--engine", "reference"});
    row("learning", QStringList{"--engine", "learning"});
    row("optimal", QStringList{"--engine", "optimal"});
    row("on the sequence", QStringList{"--engine", "reference", "--candidates", "full", "--sequence-parallel", "auto"});
    row("a pinned layer", QStringList{"--engine", "optimal", "--pin", "lm_head=column", "--pin", "*.q_proj=column"});
    row("a rule that is off", QStringList{"--engine", "reference", "--rule-off", "aten::expand"});
  }
  void everyEngineGenerates() {
    QFETCH(QStringList, how);
    verifyGenerated(
        json(QStringList{"generate", family("llama"), "--ranks", "2", "--expect", generation("llama")} + kNew + how));
  }

  /// Two KV heads on numbers of ranks that do not divide them.
  void cachesAreSplitLikeKeys_data() {
    const Rows<QString, int> row("name", "ranks");
    row("both on each of three", "qwen3", 3);
    row("on five", "granite", 5);
    row("one each on six", "qwen3", 6);
  }
  void cachesAreSplitLikeKeys() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    verifyGenerated(json(QStringList{"generate", family(name), "--ranks", QString::number(ranks), "--prompt",
                                     "5,6,7;7,6,5", "--ignore-end-token"} +
                         kNew));
  }

  /// transformers' generate would apply these settings.
  void ignoredSettingsAreNamed() {
    const QTemporaryDir folder;
    for (const char* file : {"config.json", "model.safetensors"})
      QVERIFY(QFile::copy(family("qwen3") + "/" + file, folder.filePath(file)));
    QFile config(folder.filePath("generation_config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(
        "{\"repetition_penalty\": 1.8, \"no_repeat_ngram_size\": 0, \"suppress_tokens\": [], \"num_beams\": 4}");
    config.close();
    const Finished run = cli({"generate", folder.path(), "--ranks", "2", "--prompt", "5,6,7", "--tokens", "3"});
    QCOMPARE(run.exitCode, 0);
    QVERIFY2(run.out.contains("a part of the model's generation config: repetition_penalty 1.8, num_beams 4."),
             run.out.constData());
  }

  void aPlanIsMadeAgainForThePrompt() {
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json");
    QCOMPARE(cli(QStringList{"plan", family("llama"), "--ranks", "2", "--json", plan} + kSplit).exitCode, 0);
    verifyGenerated(json(QStringList{"generate", plan, "--expect", generation("llama")} + kNew));
  }

  /// The cache is predicted as in a plan that is not for training. The report has the prompt as the user wrote it.
  void aPlanForTrainingGenerates() {
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json");
    QCOMPARE(cli(QStringList{"plan", family("llama"), "--train", "--ranks", "2", "--json", plan} + kSplit).exitCode, 0);
    const QJsonObject report = json(QStringList{"generate", plan, "--prompt", "5,6,7"} + kNew);
    QVERIFY(report["violations"].toArray().isEmpty());
    const QJsonArray arguments = report["arguments"].toArray();
    QVERIFY(arguments.contains("--prompt") && !arguments.contains("--input"));
  }

  void endsWhereTheModelSays() {
    const QTemporaryDir folder;
    for (const char* file : {"config.json", "model.safetensors"})
      QVERIFY(QFile::copy(family("llama") + "/" + file, folder.filePath(file)));
    const QByteArray expected = readBytes(generation("llama-ends"));
    const auto length = qFromLittleEndian<quint64>(expected.constData());
    const QJsonObject header = QJsonDocument::fromJson(expected.mid(8, static_cast<qsizetype>(length))).object();
    const auto start = header["end"].toObject()["data_offsets"].toArray()[0].toInteger();
    const auto end = qFromLittleEndian<qint64>(expected.constData() + 8 + length + start);
    writeBytes(folder.filePath("generation_config.json"),
               "{\"eos_token_id\": [" + QByteArray::number(end) + "], \"pad_token_id\": 0}");
    const QStringList run{folder.path(), "--expect", generation("llama-ends"), "--ranks", "2"};
    const QJsonObject ended = report(run + kNew);
    QVERIFY(ended["passed"].toBool());
    QVERIFY(ended["tokens"][0].toArray().size() < 7 + 12);
    const Finished words = cli(QStringList{"generate"} + run + kNew + kSplit);
    QVERIFY2(words.out.contains("of 12 tokens: all rows ended with the model's end token " + QByteArray::number(end)),
             words.out.constData());
    const QJsonObject whole = report(run + kNew + QStringList{"--ignore-end-token"}, 1);
    QCOMPARE(whole["tokens"][0].toArray().size(), 7 + 12);
    QVERIFY(!whole["generation"]["first_difference"].toString().isEmpty());
  }

  void namesTheFirstTokenThatDiffers() {
    const QTemporaryDir folder;
    const QString other = folder.filePath("other.safetensors");
    // Token 9 of row 1, in a tensor [2, 19].
    writeAltered(generation("llama"), other, [](QJsonObject& header, QByteArray& data) {
      const auto start = header["tokens"].toObject()["data_offsets"].toArray()[0].toInteger();
      qToLittleEndian<qint64>(3, data.data() + start + (19 + 9) * 8);
    });
    const QJsonObject run = report(QStringList{family("llama"), "--ranks", "2", "--expect", other} + kNew, 1);
    QVERIFY(!run["passed"].toBool());
    QVERIFY(run["generation"]["first_difference"].toString().startsWith("token 9 of row 1 is "));
    QVERIFY(run["generation"]["first_difference"].toString().endsWith(", not 3"));
  }

  void writesItsTokens() {
    const QTemporaryDir folder;
    const QString output = folder.filePath("tokens.safetensors");
    const QStringList run{family("gpt2"), "--ranks", "2", "--tokens", "12"};
    QVERIFY(report(run + QStringList{"--expect", generation("gpt2"), "--output", output})["passed"].toBool());
    QVERIFY(report(run + QStringList{"--input", generation("gpt2"), "--expect", output})["passed"].toBool());
  }

  void oneTokenNeedsNoStep() {
    const QJsonObject run = report({family("llama"), "--ranks", "2", "--prompt", "5,6", "--tokens", "1"});
    QVERIFY(run["passed"].toBool());
    QCOMPARE(run["generation"]["decode_steps"].toInt(), 0);
  }

  void saysWhyNothingIsGenerated_data() {
    const Rows<QStringList, int, QString> row("arguments", "exitCode", "sentence");
    const QStringList asked{"--ranks", "2", "--prompt", "5,6,7", "--tokens", "4"};
    row("encoder", QStringList{family("bert")} + asked, 3,
        "BertForMaskedLM does not predict the next token, so it cannot generate.");
    row("attends to later tokens", QStringList{family("gemma3_text-both-ways")} + asked, 3,
        "in this model tokens attend to later tokens too, so it cannot generate.");
    row("exported", QStringList{QStringLiteral(CLEAVE_TEST_DATA "/exported/llama.pt2")} + asked, 2,
        "without a KV cache. Generation needs the model's folder.");
    row("positions", QStringList{family("gpt2"), "--prompt", "5,6", "--tokens", "5000"}, 3,
        "but prompt and generated tokens need 5002. Generate fewer tokens.");
    row("rotates keys differently", QStringList{family("llama-dynamic-rope"), "--prompt", "5,6", "--tokens", "500"}, 3,
        "prompt and generated tokens need 502. Use at most");
    row("rotates keys differently, after the prompt",
        QStringList{family("phi3-longrope"), "--prompt", "5,6", "--tokens", "12"}, 3,
        "prompt and generated tokens need 14. Use at most 8.");
    row("no prompt", QStringList{family("llama"), "--tokens", "4"}, 2, "Generation needs a prompt");
    row("two prompts", QStringList{family("llama"), "--input", generation("llama")} + asked, 2,
        "--prompt and --input both give a prompt");
    row("no tokens", QStringList{family("llama"), "--prompt", "5"}, 2,
        "Run cleave-cli --help, or cleave-cli COMMAND --help.");
    row("rows", QStringList{family("llama"), "--prompt", "5,6;7", "--tokens", "4"}, 2, "rows have different lengths");
    row("no id", QStringList{family("llama"), "--prompt", "5,a", "--tokens", "4"}, 2,
        "it has text that is not a token id");
    row("outside the vocabulary", QStringList{family("llama"), "--prompt", "5,1000000", "--tokens", "4"}, 3,
        "The prompt has token 1000000, but LlamaForCausalLM has only tokens 0 to 63.");
    row("a plan for training", QStringList{family("llama"), "--train"} + asked, 2,
        "Generation runs a prompt of its own shape on this machine: leave --train out.");
    row("a batch", QStringList{family("llama"), "--batch", "2"} + asked, 2, "leave --batch out.");
    row("another prompt", QStringList{family("llama"), "--expect", generation("llama")} + asked, 3,
        "tokens does not begin with the prompt of this run");
    row("padding",
        QStringList{family("bloom-padded-left"), "--input", family("bloom-padded-left") + "/expected.safetensors",
                    "--tokens", "4"},
        3, "attention_mask is 0 in some positions of the prompt");
  }
  void saysWhyNothingIsGenerated() {
    QFETCH(QStringList, arguments);
    QFETCH(int, exitCode);
    QFETCH(QString, sentence);
    const QByteArray said = refusal(arguments, exitCode);
    QVERIFY2(said.contains(sentence.toUtf8()), said.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliGenerate)
#include "tst_cli_generate.moc"
