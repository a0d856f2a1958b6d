/// Plans of transformers and PyTorch: read, checked, priced, and compared with the engine's plan.
#include "tests/support/cli_json.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

const QStringList kAttention{"q_proj", "k_proj", "v_proj"};

/// transformers' `model.tp_plan` of a Llama.
QJsonObject ownOfLlama() {
  QJsonObject plan{{"lm_head", "colwise_gather_output"}, {"model.embed_tokens", "embedding_rowwise"}};
  for (const QString& name : kAttention) plan["model.layers.*.self_attn." + name] = "colwise";
  plan["model.layers.*.self_attn.o_proj"] = "rowwise";
  plan["model.layers.*.mlp.gate_proj"] = "colwise";
  plan["model.layers.*.mlp.up_proj"] = "colwise";
  plan["model.layers.*.mlp.down_proj"] = "rowwise";
  return plan;
}

}  // namespace

class TestCliTpPlan : public QObject {
  Q_OBJECT
 private slots:
  void readsAPlanOfTransformers() {
    const QJsonObject plan = json({"plan", model("llama"), "--tp-plan", written(ownOfLlama())});
    QMap<QString, QString> strategies;
    for (const QJsonValue& layer : plan["layers"].toArray())
      strategies[layer.toObject()["name"].toString()] = layer.toObject()["strategy"].toString();
    QCOMPARE(strategies["model.embed_tokens"], QString("vocab"));
    QCOMPARE(strategies["model.layers.1.self_attn.k_proj"], QString("column"));
    QCOMPARE(strategies["model.layers.1.mlp.down_proj"], QString("row"));
    QCOMPARE(strategies["lm_head"], QString("column+gather"));
  }

  /// Layers that the plan does not name are replicated, as in the library.
  void replicatesLayersThatAreNotNamed() {
    const QString file = written({{"lm_head", "colwise_rep"}});
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("names 1 of 16 layers; the others are replicated.\n"), done.out.constData());
    QVERIFY2(done.out.contains("0 of 16 layers with weights are split, 1 is gathered after the product."),
             done.out.constData());
    QVERIFY2(done.out.contains("before: " + file.toUtf8() + ", 2 ranks\nafter:  optimal, 2 ranks\n"),
             done.out.constData());
  }

  /// An exported plan is the same plan when it is read again, as far as the format can express it.
  void exportedPlansComeBack_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QStringList>("format");
    QTest::addColumn<QStringList>("whole");
    const QStringList tpPlan{"--format", "tp-plan"}, dtensor{"--format", "dtensor-json"};
    QTest::newRow("llama") << "llama" << tpPlan << QStringList();
    QTest::newRow("llama, transformers 4")
        << "llama" << tpPlan + QStringList{"--transformers", "4"} << QStringList{"model.embed_tokens"};
    QTest::newRow("llama, dtensor") << "llama" << dtensor << QStringList();
    QTest::newRow("tied") << "llama-tied" << dtensor << QStringList();
    QTest::newRow("mixtral") << "mixtral" << tpPlan
                             << QStringList{"model.layers.0.block_sparse_moe.gate",
                                            "model.layers.1.block_sparse_moe.gate"};
    QTest::newRow("gpt2, dtensor") << "gpt2" << dtensor << QStringList();
  }
  void exportedPlansComeBack() {
    QFETCH(QString, folder);
    QFETCH(QStringList, format);
    QFETCH(QStringList, whole);
    const QString first = m_folder.filePath("first.json"), said = m_folder.filePath("said.json");
    const Finished made =
        cli({"plan", model(folder), "--ranks", "2", "--engine", "reference", "--candidates", "full", "--json", first});
    QVERIFY2(made.exitCode == 0, made.err.constData());
    const Finished exported = cli(QStringList{"export", first, "--out", said} + format);
    QVERIFY2(exported.exitCode == 0, exported.err.constData());
    const QJsonObject again = json({"plan", model(folder), "--tp-plan", said});
    const QJsonArray before = read(first)["layers"].toArray(), after = again["layers"].toArray();
    QCOMPARE(after.size(), before.size());
    for (qsizetype i = 0; i < before.size(); ++i) {
      const QJsonObject layer = before[i].toObject();
      if (layer["kind"] == "cross_entropy") continue;
      const QString name = layer["name"].toString(),
                    axis = whole.contains(name) ? "replicated" : layer["axis"].toString();
      QVERIFY2(after[i].toObject()["axis"].toString() == axis, qPrintable(name));
    }
  }

  /// Names as in a config class, without the base model's prefix.
  void readsNamesWithoutThePrefix() {
    QJsonObject unprefixed;
    const QJsonObject own = ownOfLlama();
    for (auto entry = own.begin(); entry != own.end(); ++entry)
      unprefixed[entry.key().startsWith("model.") ? entry.key().mid(6) : entry.key()] = entry.value();
    const Finished whole = cli({"plan", model("llama"), "--tp-plan", written(own)});
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(unprefixed)});
    QCOMPARE(done.exitCode, 0);
    const auto plan = [](const QByteArray& text) { return text.left(text.indexOf("search (")); };  // it has a time
    QCOMPARE(plan(done.out), plan(whole.out));
    QVERIFY(!whole.err.contains("base_model_tp_plan"));
    QVERIFY2(done.err.contains("As a tp_plan, transformers would not find them."), done.err.constData());
  }

  /// Names that this size of a model lacks do not change the reading of others. A typo gets the closest name.
  void readsNamesWithoutThePrefixThatAreMissing() {
    QJsonObject plan{{"layers.*.mlp.up_proj", "colwise"},
                     {"layers.*.mlp.gate_proj", "colwise"},
                     {"layers.*.mlp.down_proj", "rowwise"},
                     {"layers.*.mlp.shared_experts.up_proj", "colwise"}};
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.err.contains("`layers.*.mlp.shared_experts.up_proj` names no module"), done.err.constData());
    for (const bool isDocument : {false, true}) {
      plan["layers.*.self_attn.q_prj"] = "colwise";
      const QJsonObject whole = isDocument ? QJsonObject{{"base_model_tp_plan", plan}} : plan;
      const Finished typo = cli({"plan", model("llama"), "--tp-plan", written(whole)});
      QCOMPARE(typo.exitCode, 1);
      QVERIFY2(typo.err.contains("`layers.*.self_attn.q_prj` names no module of this model; the closest name is "
                                 "`layers.*.self_attn.q_proj`."),
               typo.err.constData());
    }
  }

  /// transformers also splits layers that the plan does not name, and sums gradients of norms.
  void warnsOfWhatTransformersAdds() {
    const QJsonObject part{{"lm_head", "colwise_gather_output"}};
    QVERIFY(cli({"plan", model("llama"), "--tp-plan", written(part)})
                .err.contains("transformers adds the model's own plan to it"));
    QJsonObject norm = ownOfLlama();
    norm["model.norm"] = "sequence_parallel";
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(norm)});
    QVERIFY2(done.err.contains("`model.norm` is sequence_parallel, but"), done.err.constData());
  }

  void reportsContradictions_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("style");
    QTest::addColumn<QByteArray>("sentence");
    QTest::newRow("a column without a row")
        << "model.layers.*.self_attn.o_proj"
        << "replicate"
        << QByteArray(
               "`model.layers.*.self_attn.q_proj` is colwise without a rowwise layer after it: its result is split, "
               "but `model.layers.*.self_attn.o_proj` (replicate) expects a replicated input.");
    QTest::newRow("a row without a column")
        << "model.layers.*.mlp.up_proj"
        << "colwise_rep"
        << QByteArray(
               "`model.layers.*.mlp.down_proj` is rowwise and expects split input, but `model.layers.*.mlp.up_proj` "
               "(colwise_rep) before it gives a replicated result.");
    QTest::newRow("a name of nothing") << "model.layers.*.self_attn.qproj"
                                       << "colwise"
                                       << QByteArray(
                                              "`model.layers.*.self_attn.qproj` names no module of this model; the "
                                              "closest name is `model.layers.*.self_attn.q_proj`.");
    QTest::newRow("an unknown style") << "lm_head"
                                      << "colwis"
                                      << QByteArray("`lm_head` has the style colwis, which Cleave does not know.");
    const auto row = [](const char* what, const char* name, const char* style, const char* sentence) {
      QTest::newRow(what) << QString(name) << QString(style) << QByteArray(sentence);
    };
    row("a norm", "model.norm", "rowwise", "`model.norm` is rowwise, but it is not a Linear, an Embedding or experts");
    row("an attention", "model.layers.*.self_attn", "colwise",
        "`model.layers.*.self_attn` is colwise, but it is not a");
    row("all names", "*", "colwise", "`*` names no module of this model.");
    row("a number", "model.layers.0.mlp.up_proj", "colwise",
        "`model.layers.0.mlp.up_proj` names no module of this model; the closest name is "
        "`model.layers.*.mlp.up_proj`.");
    row("an unknown style of a norm", "model.norm", "no_such_style", "has the style no_such_style, which Cleave");
    row("a sum of what is whole", "model.layers.*.mlp", "all_reduce",
        "`model.layers.*.mlp` is all_reduce, but its result is replicated, so the sum would count it once per rank.");
    row("a helper of experts", "model.layers.*.mlp.up_proj", "moe_identity_expert",
        "`model.layers.*.mlp.up_proj` is moe_identity_expert, which is for another kind of module.");
    row("a Linear on the sequence", "model.layers.*.mlp.up_proj", "sequence_parallel",
        "which is for another kind of module");
    row("logits in parts", "lm_head", "colwise",
        "`lm_head` is colwise, but its result is an output of the model, so each rank would return only its part.");
    QTest::newRow("an embedding by features")
        << "model.embed_tokens"
        << "colwise" << QByteArray("`model.embed_tokens` is colwise, which Cleave cannot price for an embedding.");
  }
  void reportsContradictions() {
    QFETCH(QString, name);
    QFETCH(QString, style);
    QFETCH(QByteArray, sentence);
    QJsonObject plan = ownOfLlama();
    plan[name] = style;
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.err.contains(sentence), done.err.constData());
    QVERIFY(done.out.isEmpty());
  }

  void refusesOtherFiles_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("sentence");
    QTest::newRow("no JSON") << QByteArray("{\"lm_head\": ") << QByteArray("plan.json");
    QTest::newRow("a list") << QByteArray("[1]") << QByteArray("must hold a JSON object, but it holds [1]");
    QTest::newRow("a number as style") << QByteArray(R"({"lm_head": 3})")
                                       << QByteArray(R"(the style of "lm_head" must be a text, but it is 3.)");
    QTest::newRow("nothing") << QByteArray("{}")
                             << QByteArray("lists no module: it is the plan of a model that stays replicated.");
    QTest::newRow("another schema") << QByteArray(R"({"schema": "cleave.plan/1"})")
                                    << QByteArray(R"(has schema "cleave.plan/1", so it is not a plan of transformers)");
    QTest::newRow("no ranks") << QByteArray(R"({"tp_size": 0, "tp_plan": {"lm_head": "colwise_rep"}})")
                              << QByteArray("tp_size");
    QTest::newRow("deep") << QByteArray(R"({"tp_plan": )") + QByteArray(40, '[') + QByteArray(40, ']') + "}"
                          << QByteArray("deep");
  }
  void refusesOtherFiles() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, sentence);
    const QString file = m_folder.filePath("plan.json");
    write(file, text);
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file});
    QVERIFY2(done.exitCode == 3, done.err.constData());
    QVERIFY2(done.err.contains(sentence), done.err.constData());
  }

  /// A config.json may contain its plan, with names that lack the base model's prefix.
  void readsThePlanOfTheConfig() {
    const Finished none = cli({"plan", model("llama"), "--tp-plan", "own"});
    QCOMPARE(none.exitCode, 3);
    QVERIFY2(none.err.contains("has no base_model_tp_plan and no tp_plan") && none.err.contains("python -c"),
             none.err.constData());
    QJsonObject config = read(model("llama") + "/config.json"), base;
    const QJsonObject own = ownOfLlama();
    for (const QString& name : own.keys()) {
      if (name.startsWith("model.layers")) base[name.mid(6)] = own[name];
    }
    config["base_model_tp_plan"] = base;
    config["tp_plan"] = QJsonObject{{"lm_head", "colwise_rep"}};
    const QString folder = m_folder.filePath("model");
    QVERIFY(QDir().mkpath(folder));
    write(folder + "/config.json", QJsonDocument(config).toJson());
    const Finished done = cli({"plan", folder, "--tp-plan", "own"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("names 15 of 16 layers"), done.out.constData());
  }

  void comparesWithOtherPlans() {
    const QString file = written(ownOfLlama());
    const Finished done = cli({"compare", model("llama"), "reference," + file});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("lm_head: column becomes column+gather"), done.out.constData());
    QVERIFY2(done.out.contains("after:  " + file.toUtf8() + ", 2 ranks"), done.out.constData());
  }

  void warnsAboutOtherEffectsInTheLibrary() {
    QJsonObject plan = ownOfLlama();
    plan["model.layers.*.mlp.gate"] = "colwise";  // in the architecture, but not in this size
    const Finished missing = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QVERIFY2(missing.exitCode == 0, missing.err.constData());
    QVERIFY2(missing.err.contains("transformers skips it if its own plan of this architecture has it"),
             missing.err.constData());
    plan = {{"model.layers.*.input_layernorm", "replicated_with_grad_allreduce"}};
    const Finished gradient = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QVERIFY2(gradient.exitCode == 0, gradient.err.constData());
    QVERIFY2(gradient.err.contains("its gradient would be summed once per rank"), gradient.err.constData());
  }

  void aLayerIsNamedOnce() {
    const auto module = [](const char* name, const char* style) {
      return QJsonObject{
          {"name", name}, {"style", style}, {"input_layouts", "Replicate()"}, {"output_layouts", "Replicate()"}};
    };
    const QString twice =
        written({{"schema", "cleave.dtensor/1"},
                 {"mesh", QJsonObject{{"tp", 2}}},
                 {"modules", QJsonArray{module("lm_head", "ColwiseParallel"), module("lm_*", "RowwiseParallel")}}});
    const Finished done = cli({"plan", model("llama"), "--tp-plan", twice});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.err.contains("`lm_head` is listed twice, as ColwiseParallel("), done.err.constData());
    // An exported plan that splits nothing can be read too.
    const QString none =
        written({{"schema", "cleave.dtensor/1"}, {"mesh", QJsonObject{{"tp", 2}}}, {"modules", QJsonArray()}});
    const Finished whole = cli({"plan", model("llama"), "--tp-plan", none});
    QVERIFY2(whole.exitCode == 0 && whole.out.contains("names 0 of 16 layers"), whole.err.constData());
  }

  void manyProblemsAreCounted() {
    QJsonObject plan;
    for (int i = 0; i < 300; ++i) plan[QString("no_%1").arg(i)] = "colwise";
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.err.size() < 3000, done.err.constData());
    QVERIFY2(done.err.contains("(and 280 more)"), done.err.constData());
  }

  void doesNotOverwriteItsInput() {
    const QString file = written(ownOfLlama());
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file, "--json", file});
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains("is the same file as --tp-plan, which is read"), done.err.constData());
    QCOMPARE(read(file), ownOfLlama());
    const Finished compared = cli({"compare", model("llama"), file + ",optimal", "--json", file});
    QCOMPARE(compared.exitCode, 2);
    QVERIFY2(compared.err.contains("is the same file as SIDES, which is read"), compared.err.constData());
    QCOMPARE(read(file), ownOfLlama());
  }

  void usesTheRanksOfTheFile() {
    const QString file = written({{"tp_size", 4}, {"tp_plan", ownOfLlama()}});
    QCOMPARE(json({"plan", model("llama"), "--tp-plan", file})["ranks"].toInt(), 4);
    QCOMPARE(json({"plan", model("llama"), "--tp-plan", file, "--ranks", "2"})["ranks"].toInt(), 2);
  }

 private:
  static QJsonObject read(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
  }
  static void write(const QString& path, const QByteArray& text) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
  }
  QString written(const QJsonObject& plan) {
    const QString file = m_folder.filePath("written.json");
    write(file, QJsonDocument(plan).toJson());
    return file;
  }

  QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestCliTpPlan)
#include "tst_cli_tp_plan.moc"
