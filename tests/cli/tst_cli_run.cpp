#include "tests/support/cli_json.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace cleave::test;

namespace {

QJsonObject report(const QStringList& arguments) { return json(QStringList{"run"} + arguments); }

/// A folder with a family's model and a changed config.
class Copy {
 public:
  Copy(const QString& family, const QVariantMap& changes) {
    const QString source = QStringLiteral(CLEAVE_TEST_DATA "/families/") + family;
    if (!QFile::copy(source + "/model.safetensors", at("model.safetensors"))) qFatal("no weights");
    QJsonObject config = QJsonDocument::fromJson(readBytes(source + "/config.json")).object();
    for (auto it = changes.begin(); it != changes.end(); ++it) config[it.key()] = QJsonValue::fromVariant(it.value());
    writeBytes(at("config.json"), QJsonDocument(config).toJson());
  }
  QString path() const { return m_folder.path(); }
  QString at(const QString& name) const { return m_folder.filePath(name); }

 private:
  QTemporaryDir m_folder;
};

}  // namespace

class TestCliRun : public QObject {
  Q_OBJECT
 private slots:
  /// A run of a plan file passes only if the file is as Cleave wrote it.
  void anAlteredPlanDoesNotPass() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", model("llama"), "--ranks", "2", "--engine", "reference", "--json", file}).exitCode, 0);
    QJsonObject plan = QJsonDocument::fromJson(readBytes(file)).object();
    writeBytes(file, QJsonDocument(plan).toJson());  // rewritten, with its members in another order
    QCOMPARE(cli({"run", file, "--backend", "gloo"}).exitCode, 0);
    QJsonObject cost = plan["cost"].toObject();
    cost["step_ms"] = cost["step_ms"].toDouble() / 2;
    plan["cost"] = cost;
    writeBytes(file, QJsonDocument(plan).toJson());
    const Finished done = cli({"run", file, "--backend", "gloo"});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.out.contains("was changed after Cleave wrote it") && done.out.contains("FAILED"), done.out);
    const Finished exported = cli({"export", file, "--format", "json"});
    QCOMPARE(exported.exitCode, 3);
    QVERIFY2(exported.err.contains("`check " + file.toUtf8() + "` reports the differences"), exported.err);
    const Finished checked = cli({"check", file});
    QCOMPARE(checked.exitCode, 1);
    QVERIFY2(checked.out.contains("plan.cost.step_ms is ") && checked.out.contains("The file was changed"),
             checked.out);
  }

  void theSplitModelComputesWhatIsExpected_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("sequenceParallel");
    for (const char* name : {"llama", "llama-tied", "qwen2"}) {
      for (int ranks : {1, 2, 4}) {
        QTest::addRow("%s on %d", name, ranks) << name << ranks << false;
        if (ranks > 1) QTest::addRow("%s on %d, sequence parallel", name, ranks) << name << ranks << true;
      }
    }
  }
  void theSplitModelComputesWhatIsExpected() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(bool, sequenceParallel);
    const QJsonObject json = report({model(name), "--ranks", QString::number(ranks), "--backend", "gloo", "--engine",
                                     "reference", "--expect", model(name) + "/expected.safetensors", "--atol", "1e-4",
                                     "--rtol", "0", "--sequence-parallel", sequenceParallel ? "on" : "off"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["outputs"].toArray().size(), 2);  // logits and loss
    QCOMPARE(json["ranks"].toArray().size(), ranks);
    for (const QJsonValue& rank : json["ranks"].toArray()) {
      QCOMPARE(rank["bytes_read"].toInteger(), rank["shard_bytes"].toInteger());
      const QJsonObject executed = rank["collectives"].toObject();
      QCOMPARE(executed["all_reduce"].toInt() > 0, ranks > 1);
      QCOMPARE(executed["all_gather"].toInt() > 0, ranks > 1);
      QCOMPARE(executed["reduce_scatter"].toInt() > 0, sequenceParallel);
    }
  }

  /// Logits at padding are not compared. The loss and other outputs are.
  void paddingIsNotCompared_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<int>("padding");
    QTest::newRow("token types") << "bert" << QStringList{"--ranks", "2"} << 3;
    QTest::newRow("learned positions from a mask") << "opt-350m-padded-left" << QStringList{"--ranks", "4"} << 3;
    QTest::newRow("whole experts") << "mixtral" << QStringList{"--ranks", "2", "--pin", "*.experts==by-expert"} << 0;
    QTest::newRow("parts of experts") << "gpt_oss" << QStringList{"--ranks", "2", "--pin", "*.experts==in-expert"} << 0;
  }
  void paddingIsNotCompared() {
    QFETCH(QString, name);
    QFETCH(QStringList, flags);
    QFETCH(int, padding);
    const QString folder = QStringLiteral(CLEAVE_TEST_DATA "/families/") + name;
    const QJsonObject json = report(QStringList{folder, "--backend", "gloo", "--engine", "reference", "--candidates",
                                                "full", "--expect", folder + "/expected.safetensors"} +
                                    flags);
    QVERIFY(json["passed"].toBool());
    QVERIFY(json["rtol"].isNull() && json["coarsest_dtype"] == "f32");
    QCOMPARE(json["outputs"].toArray().first().toObject()["padding"].toInt(), padding);
    const QString note = QStringLiteral("%1 of 24 positions are padding and not compared.").arg(padding);
    QCOMPARE(json["notes"].toArray().contains(note), padding > 0);
  }

  /// Random inputs are in range: classes, token types, ids.
  void randomInputsFitClassifiers() {
    const QString folder = QStringLiteral(CLEAVE_TEST_DATA "/families/bert-classification");
    const QJsonObject json =
        report({folder, "--ranks", "2", "--backend", "gloo", "--engine", "reference", "--candidates", "full",
                "--token-types", "on", "--mask", "on", "--dtype", "float16"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
    QVERIFY(json["atol"].isNull() && json["coarsest_dtype"] == "f16");
    QCOMPARE(json["outputs"].toArray().first().toObject()["unit"].toDouble(), std::ldexp(1, -10));
    QVERIFY(json["notes"].toArray().last().toString().endsWith("are stored as f32 and computed in f16."));
  }

  /// A budget below the size of the model makes `optimal` split, with strategies that `reference` does not have.
  void theOptimumUnderABudgetComputesTheSame_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("flags");
    QTest::newRow("llama") << "llama" << QStringList{"--ranks", "2", "--memory-budget", "400KiB"};
    QTest::newRow("tied, sequence parallel where it pays")
        << "llama-tied" << QStringList{"--ranks", "4", "--memory-budget", "420KiB", "--sequence-parallel", "auto"};
    QTest::newRow("qwen2, tight") << "qwen2"
                                  << QStringList{"--ranks", "2", "--memory-budget", "460KiB", "--sequence-parallel",
                                                 "auto"};
  }
  void theOptimumUnderABudgetComputesTheSame() {
    QFETCH(QString, name);
    QFETCH(QStringList, flags);
    const QJsonObject json =
        report(QStringList{model(name), "--backend", "gloo", "--engine", "optimal", "--expect",
                           model(name) + "/expected.safetensors", "--atol", "1e-4", "--rtol", "0"} +
               flags);
    QVERIFY(json["passed"].toBool());
    QVERIFY(json["ranks"].toArray().size() > 1);
    for (const QJsonValue& rank : json["ranks"].toArray()) {
      const QJsonObject executed = rank["collectives"].toObject();
      QVERIFY(executed["all_reduce"].toInt() + executed["all_gather"].toInt() + executed["reduce_scatter"].toInt() > 0);
    }
  }

  void withoutAFileTheUnsplitRunIsCompared() {
    const QJsonObject json = report({model("llama"), "--ranks", "2", "--backend", "gloo", "--seq", "12"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
    // The verdict depends on this figure, also for small numbers.
    QCOMPARE(json["outputs"].toArray().size(), 2);  // logits and loss
    for (const QJsonValue& output : json["outputs"].toArray())
      QVERIFY(output["of_tolerance"].toDouble(-1) >= 0 && output["of_tolerance"].toDouble() <= 1);
  }

  /// Without the redistribution these demands have no solution.
  void aRedistributedValueComputesTheSame() {
    const QStringList demands{model("llama"), "--ranks",  "2",         "--backend", "gloo",       "--seq",
                              "12",           "--engine", "reference", "--pin",     "lm_head=row"};
    QCOMPARE(cli(QStringList{"run"} + demands).exitCode, 1);
    const QJsonObject json = report(demands + QStringList{"--redistribute", "*"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
  }

  void aConfigWithoutWeightsRunsWithRandomOnes() {
    const QString folder = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head");
    QVERIFY(report({folder, "--ranks", "2", "--backend", "gloo", "--seq", "8", "--skip-weights"})["passed"].toBool());
    const Finished refused = cli({"run", folder, "--ranks", "2", "--backend", "gloo", "--seq", "8"});
    QCOMPARE(refused.exitCode, 3);
    const char* const way =
        "one-kv-head has no weights to read. Fill all parameters from the seed with --skip-weights.\n";
    QVERIFY2(refused.err.contains(way), refused.err.constData());
    QVERIFY2(!refused.err.contains("rank 0"), refused.err.constData());
  }

  /// A run prints the warnings about the model that `plan` and `info` print.
  void aRunWarnsAboutItsModel() {
    const Copy copy("llama", {{"sliding_window", 16}});
    writeAltered(copy.at("model.safetensors"), copy.at("model.safetensors"), [](QJsonObject& header, QByteArray& data) {
      header["extra.weight"] = QJsonObject{
          {"dtype", "F32"}, {"shape", QJsonArray{1}}, {"data_offsets", QJsonArray{data.size(), data.size() + 4}}};
      data.append(4, '\0');
    });
    const QByteArray unused = "warning: One tensor of the checkpoint is not used by this model: extra.weight.\n";
    const QByteArray ignored = "warning: config.json has sliding_window, which llama models do not read.\n";
    for (const QStringList& words :
         {QStringList{"plan", copy.path()}, {"run", copy.path()}, {"run", copy.path(), "--shapes", "1x8,1x12"}}) {
      const Finished done = cli(words + QStringList{"--ranks", "2", "--engine", "reference", "--json", "-"});
      QVERIFY2(done.exitCode == 0 && done.err.count(unused) == 1 && done.err.count(ignored) == 1, done.err.constData());
    }
    const QJsonArray said =
        report({copy.path(), "--ranks", "2", "--engine", "reference", "--backend", "gloo"})["warnings"].toArray();
    QCOMPARE(said, (QJsonArray{QString(unused.mid(9).trimmed()), QString(ignored.mid(9).trimmed())}));
  }

  /// A config with more layers than the checkpoint: reported before any rank starts.
  void weightsThatAreMissingAreNamedBeforeRanksStart_data() {
    QTest::addColumn<QVariantMap>("changes");
    QTest::addColumn<QByteArray>("lacks");
    QTest::newRow("two layers more") << QVariantMap{{"num_hidden_layers", 4}}
                                     << QByteArray("18 of the model's 39 parameters: all of model.layers.{2-3}");
    QTest::newRow("as many as are usual")
        << QVariantMap{{"num_hidden_layers", QVariant()}}
        << QByteArray("270 of the model's 291 parameters: all of model.layers.{2-31}");
    QTest::newRow("biases") << QVariantMap{{"attention_bias", true}}
                            << QByteArray("8 of the model's 29 parameters: model.layers.{0-1}.self_attn.k_proj.bias");
  }
  void weightsThatAreMissingAreNamedBeforeRanksStart() {
    QFETCH(QVariantMap, changes);
    QFETCH(QByteArray, lacks);
    const Copy copy("llama", changes);
    const QStringList flags{copy.path(), "--ranks", "2", "--engine", "reference", "--seq", "8"};
    const Finished planned = cli(QStringList{"plan"} + flags + QStringList{"--json", copy.at("plan.json")});
    QVERIFY2(planned.exitCode == 0, planned.err.constData());
    QVERIFY2(planned.err.contains("warning: The checkpoint lacks " + lacks), planned.err.constData());
    for (const QStringList& words : {QStringList{"run"} + flags, QStringList{"run", copy.at("plan.json")}}) {
      const Finished refused = cli(words + QStringList{"--backend", "gloo"});
      QCOMPARE(refused.exitCode, 3);
      QVERIFY2(refused.err.contains(lacks) && refused.err.contains("The weights of the model folder ") &&
                   refused.err.contains("--init-missing") && !refused.err.contains("Rank 1") &&
                   !refused.err.contains("rank 1"),
               refused.err.constData());
    }
    const Finished filled =
        cli(QStringList{"run"} + flags + QStringList{"--backend", "gloo", "--init-missing", "--dtype", "float32"});
    QVERIFY2(filled.exitCode == 0, filled.err.constData());
  }

  void aPlanWithoutItsFolderNamesWhatStillRuns_data() {
    QTest::addColumn<QStringList>("flags");
    QTest::addColumn<QString>("why");  // empty: it runs
    const QString gone = " does not exist: ", without = ". Put it back, or run without it: ";
    const QString weights = "its weights cannot be read";
    const QString unsplit = "the unsplit run for the comparison cannot start";
    QTest::newRow("as it is") << QStringList()
                              << gone + weights + ", and " + unsplit + without + "--skip-weights --no-check.\n";
    QTest::newRow("no check") << QStringList{"--no-check"} << gone + weights + without + "--skip-weights.\n";
    QTest::newRow("no weights") << QStringList{"--skip-weights"} << gone + unsplit + without + "--no-check.\n";
    QTest::newRow("neither") << QStringList{"--skip-weights", "--no-check"} << QString();
  }
  void aPlanWithoutItsFolderNamesWhatStillRuns() {
    QFETCH(QStringList, flags);
    QFETCH(QString, why);
    QTemporaryDir folder;
    const QString gone = folder.filePath("gone"), plan = folder.filePath("plan.json");
    QVERIFY(QDir().mkdir(gone));
    for (const QString& name : QDir(model("llama")).entryList(QDir::Files))
      QVERIFY(QFile::copy(model("llama") + "/" + name, gone + "/" + name));
    QCOMPARE(cli({"plan", gone, "--engine", "reference", "--seq", "8", "--json", plan}).exitCode, 0);
    QVERIFY(QDir(gone).removeRecursively());
    const Finished done = cli(QStringList{"run", plan, "--backend", "gloo"} + flags);
    QCOMPARE(done.exitCode, why.isEmpty() ? 0 : 3);
    QVERIFY2(why.isEmpty() || done.err.contains((gone + why).toUtf8()), done.err.constData());
  }

  /// Strategies of the full candidate set that common models do not need, compared with an unsplit run of the same
  /// weights.
  void theFullCandidateSetComputesTheSame_data() {
    QTest::addColumn<QString>("base");
    QTest::addColumn<QVariantMap>("changes");  // of config.json
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("weight");  // one whose placement shows the strategy
    QTest::addColumn<QString>("placement");
    const QString oneHead = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head");
    const QString threeHeads = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/three-heads");
    const QString embedding = "model.embed_tokens.weight", head = "lm_head.weight",
                  key = "model.layers.0.self_attn.k_proj.weight";
    QTest::newRow("one KV head on 2") << oneHead << QVariantMap() << 2 << key << "S(0,x2)";
    QTest::newRow("2 KV heads on 4") << oneHead << QVariantMap{{"num_key_value_heads", 2}} << 4 << key << "S(0,x2)";
    QTest::newRow("3 heads on 2") << threeHeads << QVariantMap() << 2 << key
                                  << "S(0)";  // columns that are gathered, because the heads stay replicated
    for (int ranks : {2, 3, 4}) {
      QTest::addRow("vocabulary of 257 on %d", ranks) << oneHead << QVariantMap{{"vocab_size", 257}} << ranks << head
                                                      << (ranks == 2   ? "S(0,pad 1)"
                                                          : ranks == 3 ? "S(0,pad 1)"
                                                                       : "S(0,pad 3)");
      QTest::addRow("tied vocabulary of 257 on %d", ranks)
          << oneHead << QVariantMap{{"vocab_size", 257}, {"tie_word_embeddings", true}} << ranks << embedding
          << (ranks == 4 ? "S(0,pad 3)" : "S(0,pad 1)");
    }
  }
  void theFullCandidateSetComputesTheSame() {
    QFETCH(QString, base);
    QFETCH(QVariantMap, changes);
    QFETCH(int, ranks);
    QFETCH(QString, weight);
    QFETCH(QString, placement);
    QTemporaryDir folder;
    QFile source(base + "/config.json");
    QVERIFY(source.open(QIODevice::ReadOnly));
    QVariantMap config = QJsonDocument::fromJson(source.readAll()).object().toVariantMap();
    config.insert(changes);
    QFile changed(folder.filePath("config.json"));
    QVERIFY(changed.open(QIODevice::WriteOnly));
    changed.write(QJsonDocument(QJsonObject::fromVariantMap(config)).toJson());
    changed.close();

    const QStringList options{
        folder.path(), "--ranks", QString::number(ranks), "--engine", "reference", "--candidates", "full", "--seq", "7",
        "--batch",     "2"};
    const QJsonObject plan =
        QJsonDocument::fromJson(cli(QStringList{"plan"} + options + QStringList{"--json", "-"}).out).object();
    QString found;
    for (const QJsonValue& parameter : plan["parameters"].toArray()) {
      if (parameter["name"].toString() == weight) found = parameter["placement"].toString();
    }
    QCOMPARE(found, placement);
    const QJsonObject json = report(options + QStringList{"--backend", "gloo", "--skip-weights", "--atol", "1e-5"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
    QCOMPARE(json["outputs"].toArray().size(), 2);  // logits and loss
  }

  /// A socket or file must not get a closed stream's descriptor, because it would receive text for the user.
  void closedStandardStreamsDoNoHarm_data() {
    QTest::addColumn<QString>("redirection");
    QTest::addColumn<int>("code");
    QTest::newRow("error closed") << "2>&-" << 0;
    QTest::newRow("input and error closed") << "<&- 2>&-" << 0;
    QTest::newRow("results that cannot be written") << ">&-" << 4;
  }
  void closedStandardStreamsDoNoHarm() {
    QFETCH(QString, redirection);
    QFETCH(int, code);
    QProcess shell;
    shell.start("/bin/sh",
                {"-c", QStringLiteral("%1/cleave-cli run %2 --ranks 2 --backend gloo --seq 8 --no-check --json - %3")
                           .arg(CLEAVE_BIN_DIR, model("llama"), redirection)});
    QVERIFY(shell.waitForFinished(120'000));
    QCOMPARE(shell.exitStatus(), QProcess::NormalExit);
    QCOMPARE(shell.exitCode(), code);
    if (code == 0)
      QCOMPARE(QJsonDocument::fromJson(shell.readAllStandardOutput()).object()["ranks"].toArray().size(), 2);
  }

  /// 70 billion parameters on the ranks of one machine.
  void ranksThatDoNotFitIntoMemoryAreNotStarted() {
    QTemporaryDir folder;
    QFile config(folder.filePath("config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 65536, "
        "\"intermediate_size\": 262144,"
        " \"num_hidden_layers\": 200, \"num_attention_heads\": 512, \"num_key_value_heads\": 64, \"vocab_size\": "
        "128256,"
        " \"max_position_embeddings\": 8192, \"rms_norm_eps\": 1e-5, \"rope_theta\": 500000.0, \"hidden_act\": "
        "\"silu\","
        " \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}");
    config.close();
    const Finished done = cli({"run", folder.path(), "--ranks", "8", "--backend", "gloo", "--skip-weights", "--engine",
                               "reference", "--seq", "16"});
    QCOMPARE(done.exitCode, 4);
    QVERIFY2(QRegularExpression(
                 "8 ranks need a predicted [\\d.]+ TiB of memory \\(per rank [\\d.]+ TiB for the program and \\d+ MiB "
                 "for LibTorch, plus \\d+ MiB of shared LibTorch code\\), and this machine has [\\d.]+ \\wiB free\\."
                 ".*--ignore-memory\\.")
                 .match(QString::fromUtf8(done.err))
                 .hasMatch(),
             done.err.constData());
    QVERIFY2(!done.err.contains("spawned") && !done.err.contains("rank 0"), done.err.constData());
  }

  void ncclWithoutGpusIsAnEnvironmentError() {
    if (QFile::exists("/dev/nvidia0")) QSKIP("this machine has a GPU");
    const Finished done = cli({"run", model("llama"), "--ranks", "2", "--backend", "nccl"});
    QCOMPARE(done.exitCode, 4);
    QVERIFY2(done.err.contains("GPU"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliRun)
#include "tst_cli_run.moc"
