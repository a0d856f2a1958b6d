/// `bisect` on real ranks, with split models that compute the same and with faults, whose first difference is named.
#include "tests/support/cli_json.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include <limits>

using namespace cleave::test;

namespace {

QStringList bisect(const QString& model, int ranks) {
  return QStringList{"bisect", model, "--ranks", QString::number(ranks)} + kSplit;
}

QByteArray refusal(const QStringList& arguments) {
  const Finished run = cli(arguments);
  if (run.exitCode != 2) qFatal("exit code %d: %s", run.exitCode, run.err.constData());
  return run.err.trimmed();
}

}  // namespace

class TestCliBisect : public QObject {
  Q_OBJECT
 private slots:
  void findsNothingWhereTheSplitIsRight_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    for (const char* name : {"llama", "mixtral", "gpt2", "olmo2", "llama-one-kv-head"}) {
      for (int ranks : {2, 4}) QTest::addRow("%s on %d", name, ranks) << name << ranks;
    }
  }
  void findsNothingWhereTheSplitIsRight() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    const QJsonObject found = json(bisect(family(name), ranks) + QStringList{"--sequence-parallel", "auto"});
    QVERIFY(found["agrees"].toBool());
    QVERIFY(found["first"].isNull());
    QVERIFY2(found["compared"].toInteger() > 60, qPrintable(QString::number(found["compared"].toInteger())));
    QCOMPARE(found["values"].toArray().size(), found["compared"].toInteger());
  }

  /// A wrong rule lets the search split a softmax along its features: each rank then normalizes only its part.
  void namesTheOperatorWhoseRuleIsWrong() {
    const QString model = QStringLiteral(CLEAVE_TEST_DATA "/exported/softmax-of-features.pt2");
    QVERIFY(json(bisect(model, 2))["agrees"].toBool());
    qputenv("CLEAVE_TEST_BROKEN_RULE", "aten::_softmax");
    const QJsonObject found = json(bisect(model, 2), 1);
    const Finished run = cli(bisect(model, 2));
    qunsetenv("CLEAVE_TEST_BROKEN_RULE");
    QVERIFY(!found["agrees"].toBool());
    const QJsonObject first = found["first"].toObject();
    QCOMPARE(first["op"].toString(), "aten::_softmax");
    QVERIFY(first["outside"].toInteger() > 0);
    const QJsonObject largest = first["largest"].toObject();
    QVERIFY(std::abs(largest["actual"].toDouble() - largest["expected"].toDouble()) > 1e-4);
    for (const QJsonValue& input : found["inputs"].toArray()) QCOMPARE(input["outside"].toInteger(), 0);
    QVERIFY(!found["inputs"].toArray().isEmpty());
    QVERIFY2(run.out.startsWith("First difference: `_softmax"), run.out.constData());
    QVERIFY2(run.out.contains("Its inputs agree: `"), run.out.constData());
    QVERIFY2(run.err.contains("CLEAVE_TEST_BROKEN_RULE breaks the rule of `aten::_softmax` on purpose"),
             run.err.constData());
  }

  /// A plan file that makes a rank read another layer's weights.
  void namesAParameterThatIsLoadedWrongly() {
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json");
    QCOMPARE(cli(QStringList{"plan", family("llama"), "--ranks", "2", "--json", plan} + kSplit).exitCode, 0);
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QJsonObject document = QJsonDocument::fromJson(file.readAll()).object();
    file.close();
    QJsonArray parameters = document["parameters"].toArray();
    QString name;
    for (QJsonValueRef parameter : parameters) {
      QJsonObject changed = parameter.toObject();
      if (!changed["name"].toString().endsWith("1.mlp.up_proj.weight")) continue;
      QJsonArray pieces = changed["pieces"].toArray();
      QJsonObject second = pieces[1].toObject();
      second["tensor"] = "model.layers.0.mlp.up_proj.weight";
      pieces[1] = second;
      changed["pieces"] = pieces;
      name = changed["name"].toString();
      parameter = changed;
    }
    QVERIFY(!name.isEmpty());
    document["parameters"] = parameters;
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(QJsonDocument(document).toJson());
    file.close();
    const QJsonObject found = json({"bisect", plan}, 1);
    QCOMPARE(found["first"]["value"].toString(), name);
    QCOMPARE(found["first"]["largest"]["rank"].toInt(), 1);
  }

  /// A float32 copy of a bfloat16 value has the rounding of bfloat16.
  void halfPrecisionHasItsOwnRounding_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"qwen3", "gemma2", "granite"}) QTest::newRow(name) << name;
  }
  void halfPrecisionHasItsOwnRounding() {
    QFETCH(QString, name);
    const QJsonObject found = json(bisect(family(name), 2) + QStringList{"--seq", "16", "--dtype", "bfloat16"});
    QVERIFY(found["agrees"].toBool());
  }

  /// NaN is equal on both sides. A user whose run gives NaN wants to know where it begins.
  void namesTheFirstValueThatIsNotANumber() {
    const QTemporaryDir folder;
    const QString model = folder.filePath("model");
    QVERIFY(QDir().mkdir(model));
    QVERIFY(QFile::copy(family("llama") + "/config.json", model + "/config.json"));
    writeAltered(family("llama") + "/model.safetensors", model + "/model.safetensors",
                 withNumber("model.layers.1.mlp.up_proj.weight", 5, std::numeric_limits<float>::quiet_NaN()));
    const QJsonObject found = json(bisect(model, 2));
    QVERIFY(found["agrees"].toBool());
    QCOMPARE(found["first_not_a_number"]["value"].toString(), "model.layers.1.mlp.up_proj.weight");
    QCOMPARE(found["first_not_a_number"]["outside"].toInt(), 1);
    const Finished said = cli({"generate", model, "--ranks", "2", "--prompt", "5,6", "--tokens", "2"});
    QCOMPARE(said.exitCode, 3);
    QVERIFY2(said.err.contains("The logits are NaN, so there is no next token."), said.err.constData());
  }

  void comparesWithAnotherPlan() {
    const QTemporaryDir folder;
    const QString other = folder.filePath("other.json");
    QCOMPARE(cli(QStringList{"plan", family("llama"), "--ranks", "4", "--seq", "16", "--sequence-parallel", "on",
                             "--json", other} +
                 kSplit)
                 .exitCode,
             0);
    const QJsonObject found = json(bisect(family("llama"), 2) + QStringList{"--seq", "16", "--against", other});
    QVERIFY(found["agrees"].toBool());
    QCOMPARE(found["compared_with"].toString(), "the other plan on 4 ranks");
    const Finished apart = cli(bisect(family("llama"), 2) + QStringList{"--seq", "8", "--against", other});
    QCOMPARE(apart.exitCode, 3);
    QVERIFY2(apart.err.contains("The plans have different inputs"), apart.err.constData());
    const Finished foreign = cli(bisect(family("qwen3"), 2) + QStringList{"--seq", "16", "--against", other});
    QCOMPARE(foreign.exitCode, 3);
    QVERIFY2(foreign.err.contains("The plans are for different models: Qwen3ForCausalLM in "), foreign.err.constData());
  }

  void refusesFlagsOfOtherCommands() {
    QVERIFY(refusal({"run", family("llama"), "--against", family("llama/config.json")})
                .contains("--against is a flag of cleave-cli bisect: leave it out, or bisect."));
    for (const char* flag : {"--steps", "--no-check", "--mesh", "--output"})
      QVERIFY(refusal(bisect(family("llama"), 2) + QStringList{flag, "2"}).contains(flag));
  }
};

QTEST_GUILESS_MAIN(TestCliBisect)
#include "tst_cli_bisect.moc"
