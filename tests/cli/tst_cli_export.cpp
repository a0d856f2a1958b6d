/// The output of `cleave-cli export` in each format. tst_exported_plans runs the exported plans.
#include "tests/support/cli_json.h"

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

QString config(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/configs/") + name; }

QJsonObject objectOf(const Finished& done) { return QJsonDocument::fromJson(done.out).object(); }

}  // namespace

class TestCliExport : public QObject {
  Q_OBJECT
 private slots:
  void writesAPlanOfTransformers() {
    const Finished done = exported(model("llama"), "tp-plan");
    const QJsonObject document = objectOf(done), plan = document["tp_plan"].toObject();
    QCOMPARE(document["tp_size"].toInt(), 2);
    QCOMPARE(plan["model.layers.*.self_attn.q_proj"].toString(), QString("colwise"));
    QCOMPARE(plan["model.layers.*.mlp.down_proj"].toString(), QString("rowwise"));
    QCOMPARE(plan["model.embed_tokens"].toString(), QString("embedding_rowwise"));
    QCOMPARE(plan["lm_head"].toString(), QString("colwise_gather_output"));
    const QJsonObject four = objectOf(exported(model("llama"), "tp-plan", {"--transformers", "4"}));
    QCOMPARE(four["base_model_tp_plan"].toObject()["layers.*.self_attn.o_proj"].toString(), QString("rowwise"));
    QCOMPARE(four["tp_plan"].toObject()["lm_head"].toString(), QString("colwise_rep"));
    QVERIFY(!four["base_model_tp_plan"].toObject().contains("embed_tokens"));
  }

  /// For transformers 5 the file names replicated layers, because its models have their own plans.
  void namesReplicatedLayers() {
    const QJsonObject plan =
        objectOf(exported(model("llama"), "tp-plan", {"--pin", "*.mlp.*=replicated"}))["tp_plan"].toObject();
    QCOMPARE(plan["model.layers.*.mlp.up_proj"].toString(), QString("replicate"));
  }

  /// transformers has no names for single layers of a stack; PyTorch has.
  void namesLayersThatDiffer() {
    const QStringList one{"--pin", "model.layers.1.mlp.*=replicated"};
    const Finished transformers = exported(config("TinyLlama-1.1B"), "tp-plan", one);
    QCOMPARE(objectOf(transformers)["tp_plan"].toObject()["model.layers.*.mlp.up_proj"].toString(), QString("colwise"));
    QVERIFY2(transformers.err.contains("`model.layers.*` (differing layers): transformers lists the layers of a stack "
                                       "together; layer 1 is split like most of them."),
             transformers.err.constData());
    const Finished pytorch = exported(config("TinyLlama-1.1B"), "dtensor", one);
    QVERIFY(pytorch.out.contains("\"model.layers.0.mlp.up_proj\": ColwiseParallel("));
    QVERIFY(!pytorch.out.contains("\"model.layers.1.mlp.up_proj\""));
    QVERIFY(pytorch.out.contains("\"model.layers.*.self_attn.q_proj\": ColwiseParallel("));
  }

  /// A warning names what a format cannot express, on standard error and in the file.
  void warnsAboutWhatItLeavesOut_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("format");
    QTest::addColumn<QByteArray>("sentence");
    const QByteArray gathered = "its weight is split evenly, and its result gathered at once.";
    QTest::newRow("KV heads that ranks share") << bundled("one-kv-head") << "tp-plan"
                                               << "`model.layers.*.self_attn.q_proj` (column): the values in between "
                                                  "cannot stay split: 1 KV head does not divide by 2 ranks; " +
                                                      gathered;
    QTest::newRow("blocks") << family("phi3") << "dtensor"
                            << "`model.layers.*.self_attn.qkv_proj` (column): its weight consists of several blocks "
                               "(S(0,b[32,16,16])), but parallelize_module splits it as one; " +
                                   gathered;
    QTest::newRow("Conv1D") << model("gpt2") << "tp-plan"
                            << QByteArray(
                                   "`transformer.h.*.mlp.c_fc` (column): it is a Conv1D with a weight [in, out], but "
                                   "transformers 5 splits Linear; it is replicated.");
    QTest::newRow("a router") << model("mixtral") << "tp-plan"
                              << QByteArray(
                                     "`model.layers.*.block_sparse_moe.gate` (column+gather): it is a router, which "
                                     "transformers 5 does not treat as Linear; it is replicated.");
    QTest::newRow("heads that are counted")
        << model("gpt2") << "dtensor"
        << QByteArray(
               "transformers' gpt2 attention uses the head count of the whole model; its input is replicated, and each "
               "rank takes its part of it.");
    QTest::newRow("positions in Megatron")
        << model("gpt2") << "megatron"
        << QByteArray("`transformer.wpe` (vocab): Megatron splits only the word embedding; it is replicated.");
    QTest::newRow("a loss in vLLM") << model("llama") << "vllm"
                                    << QByteArray(
                                           "`loss` (vocab): vLLM computes no loss; logits are gathered for sampling.");
  }
  void warnsAboutWhatItLeavesOut() {
    QFETCH(QString, folder);
    QFETCH(QString, format);
    QFETCH(QByteArray, sentence);
    const Finished done = exported(folder, format);
    QVERIFY2(done.err.contains(sentence), done.err.constData());
    const qsizetype notes = format == "tp-plan" ? objectOf(done)["notes"].toArray().size() : done.out.count("(");
    QVERIFY(notes > 0);
  }

  void warnsAboutPaddedVocabularies() {
    const Finished done =
        exported(config("SmolLM3-3B"), "tp-plan", {"--ranks", "5", "--pin", "model.embed_tokens=vocab"});
    QVERIFY2(
        done.err.contains("`model.embed_tokens` (vocab): the plan pads it to divide by 5 ranks; transformers 5 gives "
                          "the last ranks less."),
        done.err.constData());
    const Finished megatron =
        exported(config("SmolLM3-3B"), "megatron", {"--ranks", "5", "--pin", "model.embed_tokens=vocab"});
    QVERIFY2(megatron.out.contains("--make-vocab-size-divisible-by 25652\n"), megatron.out.constData());
  }

  void writesFlagsOfMegatron() {
    QCOMPARE(exported(model("llama"), "megatron", {"--sequence-parallel", "on"}).out,
             QByteArray("--tensor-model-parallel-size 2\n--sequence-parallel\n--num-attention-heads 8\n"
                        "--group-query-attention\n--num-query-groups 4\n--make-vocab-size-divisible-by 128\n"
                        "--untie-embeddings-and-output-weights\n"));
    QVERIFY(!exported(model("llama-tied"), "megatron").out.contains("--untie"));
    const QByteArray experts = exported(model("mixtral"), "megatron", {"--pin", "*.experts=in-expert"}).out;
    QVERIFY2(experts.contains("--num-experts 4\n--expert-tensor-parallel-size 2\n"), experts.constData());
  }

  void namesLayersOfVllm() {
    const QByteArray llama = exported(model("llama"), "vllm").out;
    for (const char* code :
         {"`VocabParallelEmbedding(256, 64)`",
          "`QKVParallelLinear(64, head_size=8, total_num_heads=8, total_num_kv_heads=4, bias=False)`",
          "`MergedColumnParallelLinear(64, [112, 112], bias=False)`", "`RowParallelLinear(112, 64, bias=False)`",
          "`ParallelLMHead(256, 64, bias=False)`"})
      QVERIFY2(llama.contains(code), llama.constData());
    // vLLM shares KV heads among ranks like the plan.
    const Finished shared = exported(bundled("one-kv-head"), "vllm");
    QVERIFY2(shared.out.contains("total_num_kv_heads=1") && !shared.out.contains("gather_output"),
             shared.out.constData());
    const QByteArray experts = exported(model("mixtral"), "vllm").out;
    QVERIFY2(experts.contains("`FusedMoE(num_experts=4, hidden_size=64, intermediate_size=112, reduce_results=True)`"),
             experts.constData());
  }

  void writesConfigsOfTorchtitan() {
    const QByteArray text = exported(model("llama"), "torchtitan", {"--pin", "model.layers.1.mlp.*=replicated"}).out;
    QVERIFY2(text.contains("SPLIT_ATTENTION = {0, 1}\nSPLIT_FEED_FORWARD = {0}\n"), text.constData());
    const Finished other = cli(QStringList{"export", model("gpt2"), "--format", "torchtitan"} + kSplit);
    QCOMPARE(other.exitCode, 3);
    QVERIFY2(other.err.contains("This format supports llama only."), other.err.constData());
  }

  void reportsInMarkdown() {
    const QByteArray text = exported(model("llama"), "md").out;
    for (const char* part :
         {"# LlamaForCausalLM on 2 ranks\n", "**Predicted**: ", "| layer | split | why |\n|---|---|---|\n",
          "| `model.layers.{0-1}.self_attn.q_proj` | column | 64 output features", "| all_reduce | 8 |",
          "| **all** | **551 KiB** |", "## Replicated work\n"})
      QVERIFY2(text.contains(part), text.constData());
  }

  void draws_data() {
    QTest::addColumn<QString>("format");
    QTest::addColumn<QByteArray>("begin");
    QTest::newRow("svg") << "svg" << QByteArray("<?xml");
    QTest::newRow("pdf") << "pdf" << QByteArray("%PDF-");
    QTest::newRow("png") << "png" << QByteArray("\x89PNG");
  }
  void draws() {
    QFETCH(QString, format);
    QFETCH(QByteArray, begin);
    const Finished done = exported(model("llama"), format);
    QVERIFY(done.out.startsWith(begin));
    QVERIFY(done.out.size() > 20'000);
    if (format == "svg") QVERIFY(done.out.contains("model.layers.0.self_attn.q_proj.weight"));
  }

  void reportsAMissingGraphviz() {
    const QByteArray path = qgetenv("PATH");
    qputenv("PATH", m_folder.path().toUtf8());
    const Finished done = cli({"export", model("llama"), "--format", "svg"});
    qputenv("PATH", path);
    QCOMPARE(done.exitCode, 4);
    QVERIFY2(done.err.contains("its program `dot` is not in PATH. Install Graphviz"), done.err.constData());
    QVERIFY(done.out.isEmpty());
  }

  /// A plan file may contain any text, which must not become Python code.
  void namesThatPythonCannotHaveAreRefused() {
    const QString file = m_folder.filePath("plan.json");
    const Finished made = cli(QStringList{"plan", model("llama"), "--json", file} + kSplit);
    QVERIFY2(made.exitCode == 0, made.err.constData());
    QFile plan(file);
    QVERIFY(plan.open(QIODevice::ReadWrite));
    QByteArray text = plan.readAll();
    text.replace("model.layers.0.mlp.up_proj", "model.layers.0.mlp.up_proj\\\"): exit()#");
    text.replace("\"seal\"", "\"no_seal\"");
    QVERIFY(plan.resize(0) && plan.seek(0) && plan.write(text) == text.size());
    plan.close();
    const Finished done = cli({"export", file, "--format", "dtensor"});
    QVERIFY2(done.exitCode == 3, done.err.constData());
    QVERIFY2(done.err.contains("cannot be named in Python"), done.err.constData());
  }

 private:
  Finished exported(const QString& folder, const QString& format, const QStringList& options = {}) {
    const Finished done = cli(QStringList{"export", folder, "--format", format} + kSplit + options);
    if (done.exitCode != 0) qWarning("%s", done.err.constData());
    return done;
  }

  QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestCliExport)
#include "tst_cli_export.moc"
