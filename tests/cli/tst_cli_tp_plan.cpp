/// Plans of transformers and PyTorch brought in: read, checked, priced, and beside the plan that the engine finds.
#include "tests/support/cli_json.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

const QStringList kAttention{"q_proj", "k_proj", "v_proj"};

/// What transformers' `model.tp_plan` says of a Llama.
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
  void readsWhatTransformersSays() {
    const QJsonObject plan = json({"plan", model("llama"), "--tp-plan", written(ownOfLlama())});
    QMap<QString, QString> strategies;
    for (const QJsonValue& layer : plan["layers"].toArray())
      strategies[layer.toObject()["name"].toString()] = layer.toObject()["strategy"].toString();
    QCOMPARE(strategies["model.embed_tokens"], QString("vocab"));
    QCOMPARE(strategies["model.layers.1.self_attn.k_proj"], QString("column"));
    QCOMPARE(strategies["model.layers.1.mlp.down_proj"], QString("row"));
    QCOMPARE(strategies["lm_head"], QString("column+gather"));
  }

  /// What is not named is whole, as it is for the library.
  void leavesWholeWhatIsNotNamed() {
    const QString file = written({{"lm_head", "colwise_rep"}});
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("names 1 of 16 layers; the others are whole.\n"), done.out.constData());
    QVERIFY2(done.out.contains("0 of 16 layers with weights are split, 1 is gathered after the product."),
             done.out.constData());
    QVERIFY2(done.out.contains("before: " + file.toUtf8() + ", 2 ranks\nafter:  optimal, 2 ranks\n"),
             done.out.constData());
  }

  /// What one format says of a plan, read again, is that plan: as far as it could be said.
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
        cli({"plan", model(folder), "--ranks", "2", "--engine", "reference", "--menu", "full", "--json", first});
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

  /// As it stands in the code of a config's class: without the base model's prefix.
  void readsNamesBehindTheBase() {
    QJsonObject behind;
    const QJsonObject own = ownOfLlama();
    for (auto entry = own.begin(); entry != own.end(); ++entry)
      behind[entry.key().startsWith("model.") ? entry.key().mid(6) : entry.key()] = entry.value();
    const Finished whole = cli({"plan", model("llama"), "--tp-plan", written(own)});
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(behind)});
    QCOMPARE(done.exitCode, 0);
    const auto plan = [](const QByteArray& text) { return text.left(text.indexOf("search (")); };  // it has a time
    QCOMPARE(plan(done.out), plan(whole.out));
    QVERIFY(!whole.err.contains("base_model_tp_plan"));
    QVERIFY2(done.err.contains("as a tp_plan transformers would not find them."), done.err.constData());
  }

  /// Names that this size of a model lacks do not change how the others are read; a typo is near to something.
  void readsNamesBehindTheBaseThatAreMissing() {
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
      QVERIFY2(typo.err.contains("`layers.*.self_attn.q_prj` names no module of this model; near to it is "
                                 "`layers.*.self_attn.q_proj`."),
               typo.err.constData());
    }
  }

  /// What transformers makes of a plan beyond what it names, and of the gradients of norms.
  void warnsOfWhatTransformersAdds() {
    const QJsonObject part{{"lm_head", "colwise_gather_output"}};
    QVERIFY(
        cli({"plan", model("llama"), "--tp-plan", written(part)}).err.contains("lays it over the plan that its own"));
    QJsonObject norm = ownOfLlama();
    norm["model.norm"] = "sequence_parallel";
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(norm)});
    QVERIFY2(done.err.contains("`model.norm` is sequence_parallel, but"), done.err.constData());
  }

  void saysWhatDisagrees_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("style");
    QTest::addColumn<QByteArray>("sentence");
    QTest::newRow("a column without a row") << "model.layers.*.self_attn.o_proj"
                                            << "replicate"
                                            << QByteArray(
                                                   "`model.layers.*.self_attn.q_proj` is colwise and nothing "
                                                   "rowwise follows: its result is split, and "
                                                   "`model.layers.*.self_attn.o_proj` (replicate) expects it whole.");
    QTest::newRow("a row without a column") << "model.layers.*.mlp.up_proj"
                                            << "colwise_rep"
                                            << QByteArray(
                                                   "`model.layers.*.mlp.down_proj` is rowwise and expects parts, "
                                                   "but `model.layers.*.mlp.up_proj` (colwise_rep) in front of it "
                                                   "gives a whole result.");
    QTest::newRow("a name of nothing") << "model.layers.*.self_attn.qproj"
                                       << "colwise"
                                       << QByteArray(
                                              "`model.layers.*.self_attn.qproj` names no module of this model; "
                                              "near to it is `model.layers.*.self_attn.q_proj`.");
    QTest::newRow("an unknown style") << "lm_head"
                                      << "colwis"
                                      << QByteArray(
                                             "`lm_head` has the style colwis, which this program does not know.");
    const auto row = [](const char* what, const char* name, const char* style, const char* sentence) {
      QTest::newRow(what) << QString(name) << QString(style) << QByteArray(sentence);
    };
    row("a norm", "model.norm", "rowwise",
        "`model.norm` is rowwise, and it is no layer: Linear, Embedding and experts");
    row("an attention", "model.layers.*.self_attn", "colwise", "`model.layers.*.self_attn` is colwise, and it is no");
    row("all names", "*", "colwise", "`*` names no module of this model.");
    row("a number", "model.layers.0.mlp.up_proj", "colwise",
        "`model.layers.0.mlp.up_proj` names no module of this model; near to it is `model.layers.*.mlp.up_proj`.");
    row("an unknown style of a norm", "model.norm", "no_such_style", "has the style no_such_style, which this program");
    row("a sum of what is whole", "model.layers.*.mlp", "all_reduce",
        "`model.layers.*.mlp` is all_reduce, and its result is whole on every rank: it would be added up once for "
        "each.");
    row("a helper of experts", "model.layers.*.mlp.up_proj", "moe_identity_expert",
        "`model.layers.*.mlp.up_proj` is moe_identity_expert, which is for modules of another kind.");
    row("a Linear on the sequence", "model.layers.*.mlp.up_proj", "sequence_parallel",
        "which is for modules of another");
    row("logits in parts", "lm_head", "colwise",
        "`lm_head` is colwise, and its result is the model's: each rank would have its part of it alone.");
    QTest::newRow("an embedding by features") << "model.embed_tokens"
                                              << "colwise"
                                              << QByteArray(
                                                     "`model.embed_tokens` is colwise, which is not priced for an "
                                                     "embedding.");
  }
  void saysWhatDisagrees() {
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

  void refusesWhatIsNoPlan_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("sentence");
    QTest::newRow("no JSON") << QByteArray("{\"lm_head\": ") << QByteArray("plan.json");
    QTest::newRow("a list") << QByteArray("[1]") << QByteArray("must hold a JSON object, but it holds [1]");
    QTest::newRow("a number as style") << QByteArray(R"({"lm_head": 3})")
                                       << QByteArray(R"(the style of "lm_head" must be a text, but it is 3.)");
    QTest::newRow("nothing") << QByteArray("{}")
                             << QByteArray("names no module: it is the plan of a model that stays whole.");
    QTest::newRow("another schema") << QByteArray(R"({"schema": "cleave.plan/1"})")
                                    << QByteArray(R"(is of schema "cleave.plan/1", and no plan of transformers)");
    QTest::newRow("no ranks") << QByteArray(R"({"tp_size": 0, "tp_plan": {"lm_head": "colwise_rep"}})")
                              << QByteArray("tp_size");
    QTest::newRow("deep") << QByteArray(R"({"tp_plan": )") + QByteArray(40, '[') + QByteArray(40, ']') + "}"
                          << QByteArray("deep");
  }
  void refusesWhatIsNoPlan() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, sentence);
    const QString file = m_folder.filePath("plan.json");
    write(file, text);
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file});
    QVERIFY2(done.exitCode == 3, done.err.constData());
    QVERIFY2(done.err.contains(sentence), done.err.constData());
  }

  /// A config.json may carry its plan, whose names begin behind the base model's.
  void takesThePlanOfTheConfig() {
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
    const Finished done = cli({"plan", model("llama"), "--compare", "reference," + file});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.out.contains("lm_head: column becomes column+gather"), done.out.constData());
    QVERIFY2(done.out.contains("after:  " + file.toUtf8() + ", 2 ranks"), done.out.constData());
  }

  void saysWhatElseTheLibraryMakesOfIt() {
    QJsonObject plan = ownOfLlama();
    plan["model.layers.*.mlp.gate"] = "colwise";  // of the architecture, and not of this size
    const Finished missing = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QVERIFY2(missing.exitCode == 0, missing.err.constData());
    QVERIFY2(missing.err.contains("transformers passes over it where its own plan of this architecture has it"),
             missing.err.constData());
    plan = {{"model.layers.*.input_layernorm", "replicated_with_grad_allreduce"}};
    const Finished gradient = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QVERIFY2(gradient.exitCode == 0, gradient.err.constData());
    QVERIFY2(gradient.err.contains("its gradient is added up once for each rank"), gradient.err.constData());
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
    QVERIFY2(done.err.contains("`lm_head` is named twice, as ColwiseParallel("), done.err.constData());
    // What is exported of a plan that splits nothing comes back too.
    const QString none =
        written({{"schema", "cleave.dtensor/1"}, {"mesh", QJsonObject{{"tp", 2}}}, {"modules", QJsonArray()}});
    const Finished whole = cli({"plan", model("llama"), "--tp-plan", none});
    QVERIFY2(whole.exitCode == 0 && whole.out.contains("names 0 of 16 layers"), whole.err.constData());
  }

  void manyProblemsAreNotAllTold() {
    QJsonObject plan;
    for (int i = 0; i < 300; ++i) plan[QString("no_%1").arg(i)] = "colwise";
    const Finished done = cli({"plan", model("llama"), "--tp-plan", written(plan)});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.err.size() < 3000, done.err.constData());
    QVERIFY2(done.err.contains("(and 280 more)"), done.err.constData());
  }

  void doesNotOverwriteWhatItReads() {
    const QString file = written(ownOfLlama());
    const Finished done = cli({"plan", model("llama"), "--tp-plan", file, "--json", file});
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains("is the same file as --tp-plan, which is read"), done.err.constData());
    QCOMPARE(read(file), ownOfLlama());
    const Finished compared = cli({"plan", model("llama"), "--compare", file + ",optimal", "--json", file});
    QCOMPARE(compared.exitCode, 2);
    QVERIFY2(compared.err.contains("is the same file as --compare, which is read"), compared.err.constData());
    QCOMPARE(read(file), ownOfLlama());
  }

  void takesTheRanksOfTheFile() {
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
