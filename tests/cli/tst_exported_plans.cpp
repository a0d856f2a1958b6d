/// Exported plans as users load them: by transformers and by parallelize_module, on two Gloo ranks, and programs for
/// spmd_types by its checker. Logits and gradients equal the unsplit model's. Parameters are split as planned, except
/// those that the format cannot split.
#include "tests/support/cli_json.h"

#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

constexpr double kTolerance = 1e-4;
constexpr int kSkipped = 77;

/// Folded names of parameters with a common prefix, such as "h.*.attn.".
QStringList under(const QString& prefix, const QStringList& names) {
  QStringList all;
  for (const QString& name : names) all << prefix + name;
  return all;
}

struct Case {
  QString model, kind;
  QStringList options;
  QStringList different;  ///< sorted
};

/// Experts, routers and Conv1D are separate modules, which a library splits only if it supports them.
QList<Case> cases() {
  const QString moe = "model.layers.*.mlp.", block = "transformer.h.*.";
  const QStringList experts = under(moe, {"experts.down_proj", "experts.gate_up_proj"}), router{moe + "gate.weight"};
  const QStringList byExpert{"--pin", "model.layers.*.block_sparse_moe.experts=by-expert"};
  return {
      {model("llama"), "tp-plan", {}, {}},
      {model("llama"), "dtensor", {}, {}},
      {model("llama-tied"), "tp-plan", {}, {}},
      {model("llama-tied"), "dtensor", {}, {}},
      {model("qwen2"), "tp-plan", {}, {}},
      {model("qwen2"), "dtensor", {}, {}},
      {model("mixtral"), "tp-plan", {}, router},
      {model("mixtral"), "tp-plan", byExpert, router},
      {model("mixtral"), "dtensor", {}, experts + router},
      {model("gpt2"),
       "tp-plan",
       {},
       under(block, {"attn.c_attn.bias", "attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.bias", "mlp.c_fc.weight",
                     "mlp.c_proj.weight"})},
      {model("gpt2"), "dtensor", {}, {}},
      {model("llama"), "loss-parallel", {}, {}},
      {model("llama"), "dtensor", {"--sequence-parallel", "on"}, {}},
      {model("llama"), "tp-plan", {"--sequence-parallel", "on"}, {}},
      // Norms of heads, whose gradient is a sum over the ranks; tied weights and special cases of other families.
      {family("gemma3_text"), "tp-plan", {}, {}},
      {family("gemma3_text"), "dtensor", {}, {}},
      {family("qwen3"), "dtensor", {}, {}},
      {family("qwen3"), "dtensor", {"--sequence-parallel", "on"}, {}},
      {family("gpt_neox"), "tp-plan", {}, {}},
      {family("phi3"), "tp-plan", {}, {}},
      {family("gemma-one-kv-head"), "dtensor", {}, {}},
      {family("opt"), "tp-plan", {}, {"model.decoder.embed_positions.weight"}},
      {family("bert"), "dtensor", {}, {"bert.embeddings.word_embeddings.weight", "cls.predictions.bias"}},
  };
}

}  // namespace

/// The output of a script of tests/python; empty, with the reason in `said`, if a package is not installed.
QJsonArray answersOf(const QString& script, const QStringList& arguments, QByteArray& said) {
  QProcess python;
  python.start(QStringLiteral(CLEAVE_TORCH_PYTHON),
               QStringList{"-B", QStringLiteral(CLEAVE_SOURCE_DIR "/tests/python/") + script} + arguments);
  if (!python.waitForStarted()) {
    said = CLEAVE_TORCH_PYTHON " does not exist.";
    return {};
  }
  if (!python.waitForFinished(280'000)) qFatal("%s does not end", qPrintable(script));
  said = python.readAllStandardError();
  if (python.exitCode() == kSkipped) return {};
  if (python.exitStatus() != QProcess::NormalExit || python.exitCode() != 0) qFatal("%s", said.constData());
  return QJsonDocument::fromJson(python.readAllStandardOutput()).array();
}

class TestExportedPlans : public QObject {
  Q_OBJECT
 private slots:
  void computeTheSameAndSplitAsPlanned() {
    const QTemporaryDir folder;
    QJsonArray asked;
    int number = 0;
    for (const Case& one : cases()) {
      const QString plan = folder.filePath(QString::number(number) + ".plan.json");
      const QString format = one.kind == "tp-plan" ? "tp-plan" : "dtensor";
      const QString file = folder.filePath(QString::number(number++) + (format == "dtensor" ? ".py" : ".json"));
      const Finished made = cli(QStringList{"plan", one.model, "--ranks", "2", "--engine", "reference", "--candidates",
                                            "full", "--json", plan} +
                                one.options);
      QVERIFY2(made.exitCode == 0, made.err.constData());
      const Finished exported = cli({"export", plan, "--format", format, "--out", file});
      QVERIFY2(exported.exitCode == 0, exported.err.constData());
      asked.append(QJsonObject{{"model", one.model}, {"kind", one.kind}, {"export", file}, {"plan", plan}});
    }
    const QString list = folder.filePath("cases.json");
    QFile out(list);
    QVERIFY(out.open(QIODevice::WriteOnly) && out.write(QJsonDocument(asked).toJson()) > 0);
    out.close();

    QByteArray said;
    const QJsonArray answers = answersOf("exported_plans.py", {list}, said);
    if (answers.isEmpty()) QSKIP(said.constData());
    QCOMPARE(answers.size(), qsizetype(cases().size()));
    for (qsizetype i = 0; i < answers.size(); ++i) check(cases()[i], answers[i].toObject(), said);
  }

  /// Each collective is needed: without any one of them, the checker refuses the program because of its types.
  void spmdTypesAcceptsThemOnlyWithAllCollectives() {
    struct Program {
      QString model;
      QStringList options;
      int collectives;
    };
    const QList<Program> programs{{model("llama"), {}, 9},
                                  {model("llama"), {"--sequence-parallel", "on"}, 14},
                                  {model("gpt2"), {}, 10},
                                  {model("mixtral"), {}, 11},
                                  {bundled("one-kv-head"), {"--ranks", "4"}, 9},
                                  {QStringLiteral(CLEAVE_TEST_DATA "/exported/bert.pt2"), {}, 7}};
    const QTemporaryDir folder;
    QStringList files;
    for (const Program& program : programs) {
      files << folder.filePath(QString::number(files.size()) + ".py");
      const Finished exported = cli(QStringList{"export", program.model, "--engine", "reference", "--candidates",
                                                "full", "--format", "spmd-types", "--out", files.back()} +
                                    program.options);
      QVERIFY2(exported.exitCode == 0, exported.err.constData());
    }
    QByteArray said;
    const QJsonArray answers = answersOf("exported_spmd_types.py", files, said);
    if (answers.isEmpty()) QSKIP(said.constData());
    QCOMPARE(answers.size(), programs.size());
    for (qsizetype i = 0; i < answers.size(); ++i) {
      const QJsonObject answer = answers[i].toObject();
      const QByteArray what = programs[i].model.toUtf8() + ": " + QJsonDocument(answer).toJson();
      QVERIFY2(answer["accepted"] == true, what);
      QVERIFY2(answer["collectives"].toInt() == programs[i].collectives, what);
      QVERIFY2(answer["by_type"].toInt() == programs[i].collectives, what);
    }
  }

 private:
  void check(const Case& one, const QJsonObject& answer, const QByteArray& said) {
    const QByteArray what =
        (QFileInfo(one.model).fileName() + ", " + one.kind + ": ").toUtf8() + QJsonDocument(answer).toJson();
    QVERIFY2(!answer.contains("error"), what + said);
    QVERIFY2(answer["logits"].toDouble(1) <= kTolerance, what);
    QVERIFY2(answer["gradients"].toDouble(1) <= kTolerance, what);
    QVERIFY2(answer["split"].toInt() > 0, what);
    QStringList different;
    for (const QJsonValue& name : answer["different"].toArray()) different << name.toString();
    QCOMPARE(different, one.different);
  }
};

QTEST_GUILESS_MAIN(TestExportedPlans)
#include "tst_exported_plans.moc"
