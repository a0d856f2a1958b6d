#include "tests/support/cli_json.h"
#include "tests/support/rows.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

QJsonObject planJson(const QStringList& arguments, int expectedExit = 0) {
  return json(QStringList{"plan"} + arguments, expectedExit);
}

QMap<QString, QString> axes(const QJsonObject& plan) {
  QMap<QString, QString> byName;
  for (const QJsonValue& layer : plan["layers"].toArray()) byName[layer["name"].toString()] = layer["axis"].toString();
  return byName;
}

}  // namespace

class TestCliPlan : public QObject {
  Q_OBJECT
 private slots:
  void ordinaryModelsAreSplitAsMegatronDoes_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<int>("ranks");
    for (const char* name : {"llama", "llama-tied", "qwen2"}) {
      for (int ranks : {2, 4}) QTest::addRow("%s on %d", name, ranks) << model(name) << ranks;
    }
  }
  void ordinaryModelsAreSplitAsMegatronDoes() {
    QFETCH(QString, folder);
    QFETCH(int, ranks);
    const QJsonObject plan =
        planJson({folder, "--ranks", QString::number(ranks), "--seq", "16", "--engine", "reference"});
    const auto byName = axes(plan);
    QCOMPARE(byName["model.embed_tokens"], QString("vocab"));
    QCOMPARE(byName["lm_head"], QString("column"));
    for (const char* part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"}) {
      QCOMPARE(byName[QString("model.layers.1.") + part], QString("column"));
    }
    for (const char* part : {"self_attn.o_proj", "mlp.down_proj"})
      QCOMPARE(byName[QString("model.layers.1.") + part], QString("row"));
    int projections = 0;
    for (const QJsonValue& parameter : plan["parameters"].toArray()) {
      if (!parameter["name"].toString().contains("proj.weight")) continue;
      ++projections;
      qint64 whole = 1, local = 1;
      for (const QJsonValue& size : parameter["shape"].toArray()) whole *= size.toInteger();
      for (const QJsonValue& size : parameter["local_shape"].toArray()) local *= size.toInteger();
      QCOMPARE(local * ranks, whole);
    }
    QCOMPARE(projections, 14);  // seven per layer
  }

  void theJsonKeepsItsContract() {
    const QJsonObject plan = planJson({model("llama"), "--seq", "16"});
    QCOMPARE(plan["schema"].toString(), QString("cleave.plan/1"));
    for (const char* key : {"model", "ranks", "engine", "cost", "timings_ms", "search", "values", "layers",
                            "collectives", "parameters", "memory"}) {
      QVERIFY2(plan.contains(key), key);
    }
    for (const char* key : {"load", "capture", "decompose", "solve", "annotate", "replace"})
      QVERIFY2(plan["timings_ms"].toObject().contains(key), key);
    for (const char* key : {"tries", "conflicts", "backtracks", "events"})
      QVERIFY2(plan["search"].toObject().contains(key), key);
    for (const char* key : {"name", "op", "shape", "placement", "scope", "origin"})
      QVERIFY2(plan["values"].toArray()[0].toObject().contains(key), key);
    for (const char* key :
         {"name", "kind", "axis", "gather_output", "input_is_parallel", "sequence_parallel", "weight"}) {
      QVERIFY2(plan["layers"].toArray()[0].toObject().contains(key), key);
    }
    QVERIFY(plan["memory"].toObject()["per_rank_bytes"].isObject());
  }

  void kvHeadsThatDoNotDivideAreReportedWithNumbers() {
    const Finished done = cli({"plan", model("llama"), "--ranks", "8", "--seq", "16", "--engine", "reference"});
    QCOMPARE(done.exitCode, 0);
    const QByteArray text = done.out + done.err;
    QVERIFY2(text.contains("4 KV heads do not divide by 8 ranks"), text.constData());
    const auto byName = axes(planJson({model("llama"), "--ranks", "8", "--seq", "16", "--engine", "reference"}));
    QCOMPARE(byName["model.layers.0.self_attn.k_proj"], QString("replicated"));
    QCOMPARE(byName["model.layers.0.mlp.up_proj"], QString("column"));
  }

  void aPinWithoutSolutionExitsOneAndNamesThePin() {
    const Finished done = cli({"plan", model("llama"), "--engine", "reference", "--pin", "lm_head=row", "--json", "-"});
    QCOMPARE(done.exitCode, 1);
    QVERIFY2(done.err.contains("lm_head"), done.err.constData());
    const QJsonObject json = QJsonDocument::fromJson(done.out).object();
    QVERIFY(json["search"].toObject()["tries"].toInt() > 100);
    QVERIFY(!json["causes"].toArray().isEmpty());
  }

  void enginesWithoutABudgetReportIt_data() {
    const Rows<QString> row("engine");
    row("reference", "reference");
    row("learning", "learning");
  }
  void enginesWithoutABudgetReportIt() {
    QFETCH(QString, engine);
    const QStringList asked{model("llama"), "--ranks",         "2",     "--seq", "16", "--engine",
                            engine,         "--memory-budget", "100000"};
    const Finished planned = cli(QStringList{"plan"} + asked);
    QCOMPARE(planned.exitCode, 1);
    QVERIFY2(planned.err.contains(" more than the memory budget of 97.7 KiB") &&
                 planned.err.contains("The engine " + engine.toUtf8() + " ignores the budget"),
             planned.err.constData());
    const Finished explained = cli(QStringList{"explain"} + asked);  // tries its remedies under that budget
    QVERIFY2(explained.exitCode == 1, explained.err.constData());
    QVERIFY2(!explained.err.contains("invariant"), explained.err.constData());
  }

  /// Both commands list changes that fit the budget, and each change fits.
  void listsWhatFitsTheBudget_data() {
    QTest::addColumn<QString>("engine");
    QTest::addColumn<bool>("isFeasible");
    for (const char* engine : {"reference", "learning"}) {
      QTest::addRow("%s, a feasible budget", engine) << engine << true;
      QTest::addRow("%s, an infeasible budget", engine) << engine << false;
    }
  }
  void listsWhatFitsTheBudget() {
    QFETCH(QString, engine);
    QFETCH(bool, isFeasible);
    const QStringList onTwo{model("llama"), "--ranks", "2"};
    const auto bytesOf = [](const Finished& done) {
      return QJsonDocument::fromJson(done.out).object()["cost"].toObject()["rank_bytes"].toInteger();
    };
    const qint64 needed = bytesOf(cli(QStringList{"plan"} + onTwo + QStringList{"--engine", engine, "--json", "-"}));
    const QString budget = QString::number(isFeasible ? needed - 1 : 1);
    const QStringList asked = onTwo + QStringList{"--engine", engine, "--memory-budget", budget};
    const Finished planned = cli(QStringList{"plan"} + asked);
    const QByteArray text = cli(QStringList{"explain"} + asked).out;
    const Finished explained = cli(QStringList{"explain"} + asked + QStringList{"--json", "-"});
    QCOMPARE(planned.exitCode, 1);
    QCOMPARE(explained.exitCode, 1);
    const QByteArray fitting = planned.err.mid(planned.err.indexOf("What fits, each tried alone"));
    QVERIFY2(text.contains(fitting), (planned.err + text).constData());
    const QJsonObject answer = QJsonDocument::fromJson(explained.out).object();
    QCOMPARE(answer["too_large"].toArray(), isFeasible ? QJsonArray() : QJsonArray{"the engine optimal"});
    QStringList listed;
    for (const QJsonValue& fit : answer["fits"].toArray()) {
      const QStringList flags = fit["flags"].toString().split(' ');
      QStringList changed = asked;
      changed[changed.indexOf(flags[0]) + 1] = flags[1];
      const Finished done = cli(QStringList{"plan"} + changed + QStringList{"--json", "-"});
      QVERIFY2(done.exitCode == 0, done.err.constData());
      QCOMPARE(bytesOf(done), fit["rank_bytes"].toInteger());
      listed << flags[0];
    }
    QCOMPARE(listed, isFeasible ? QStringList({"--engine", "--memory-budget"}) : QStringList({"--memory-budget"}));
  }

  void traceIsSavedAndReadAgain() {
    QTemporaryDir folder;
    const QString file = folder.filePath("search.trace");
    QCOMPARE(cli({"plan", model("llama"), "--ranks", "8", "--engine", "reference", "--trace", file}).exitCode, 0);
    const QJsonObject counts = QJsonDocument::fromJson(cli({"trace", file, "--stats", "--json"}).out).object();
    QVERIFY(counts["conflicts"].toInt() > 0);
    QCOMPARE(counts["engine"].toString(), QString("reference"));
    const Finished state = cli({"trace", file, "--at", QString::number(counts["events"].toInt()), "--json"});
    QVERIFY(QJsonDocument::fromJson(state.out).object()["values"].toObject().size() > 50);
    QCOMPARE(cli({"trace", file, "--text"}).out.count('\n'), counts["events"].toInt());
    const QByteArray steps = ", but the trace has " + QByteArray::number(counts["events"].toInt()) + " steps.";
    for (const char* at : {"999999999", "9223372036854775808", "99999999999999999999"}) {
      const Finished beyond = cli({"trace", file, "--at", at});
      QCOMPARE(beyond.exitCode, 2);
      QVERIFY2(beyond.err.contains("--at is " + QByteArray(at) + steps), beyond.err.constData());
    }
    for (const char* at : {"--at=-1", "--at=x", "--at=1x"}) QCOMPARE(cli({"trace", file, at}).exitCode, 2);
  }

  /// One KV head on two ranks: column, with a copy of the weight on every rank.
  void aTraceMarksCopies() {
    QTemporaryDir folder;
    const QString file = folder.filePath("search.trace");
    const QString sample = CLEAVE_SOURCE_DIR "/resources/models/one-kv-head";
    QCOMPARE(cli({"plan", sample, "--engine", "reference", "--candidates", "full", "--trace", file}).exitCode, 0);
    const QByteArray events = cli({"trace", file, "--text"}).out;
    const auto at = events.indexOf(", copied) -> ");
    QVERIFY2(at > 0, events.constData());
    const auto step = events.left(at).mid(events.lastIndexOf('\n', at) + 1).split(' ').front().toInt();
    const Finished state = cli({"trace", file, "--at", QString::number(step)});
    QVERIFY2(state.out.contains(", copied"), state.out.left(200).constData());
  }

  /// A line of --text and --at with its number print the same event.
  void linesAreNumberedAsStepsAre() {
    QTemporaryDir folder;
    const QString file = folder.filePath("search.trace");
    QCOMPARE(cli({"plan", model("llama"), "--engine", "reference", "--trace", file}).exitCode, 0);
    const auto lines = cli({"trace", file, "--text"}).out.trimmed().split('\n');
    for (const qsizetype at : {qsizetype(0), lines.size() / 2, lines.size() - 1}) {
      const auto words = lines[at].split(' ');
      QCOMPARE(words[0].toLongLong(), at + 1);
      const Finished state = cli({"trace", file, "--at", words[0]});
      QVERIFY2(state.out.startsWith("step " + words[0] + " of "), state.out.left(200).constData());
      if (words[1] == "visit")
        QVERIFY2(state.out.contains("arrives at `" + words[2] + "`"), state.out.left(200).constData());
    }
  }

  /// A gathered column is another strategy than column, because the next layer reads a replicated value.
  void theSummaryNamesStrategies() {
    const Finished done = cli({"plan", model("llama"), "--ranks", "2", "--pin", "lm_head=column+gather"});
    QCOMPARE(done.exitCode, 0);
    QVERIFY2(done.out.contains("lm_head") && done.out.contains("column+gather"), done.out.constData());
  }

  void aPlanFileCanBeCheckedAndExported() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", model("llama"), "--seq", "16", "--engine", "reference", "--json", file}).exitCode, 0);
    const Finished check = cli({"check", file});
    QVERIFY2(check.exitCode == 0, (check.out + check.err).constData());
    const Finished dot = cli({"export", file, "--format", "dot"});
    QVERIFY(dot.out.startsWith("digraph"));

    QFile plan(file);
    QVERIFY(plan.open(QIODevice::ReadOnly));
    QByteArray text = plan.readAll();
    plan.close();
    text.replace("\"S(2)\"", "\"S(1)\"");
    QVERIFY(plan.open(QIODevice::WriteOnly));
    plan.write(text);
    plan.close();
    QVERIFY(cli({"check", file}).exitCode != 0);
  }

  /// A refusal names the command that accepts the file.
  void theCommandForAnotherKindOfFileIsNamed() {
    QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json"), trace = folder.filePath("search.trace");
    const QString folderOfModel = model("llama");
    QCOMPARE(cli({"plan", folderOfModel, "--seq", "16", "--json", plan, "--trace", trace}).exitCode, 0);
    const QMap<QString, QStringList> isFor{
        {plan, {"check", "export"}}, {trace, {"trace"}}, {folderOfModel, {"info", "plan", "explain", "export"}}};
    for (const char* command : {"check", "trace", "info", "plan", "explain"}) {
      for (const auto& [file, commands] : isFor.asKeyValueRange()) {
        const Finished done = cli({command, file});
        QVERIFY2((done.exitCode == 0) == commands.contains(command), done.err.constData());
        if (commands.contains(command)) continue;
        QCOMPARE(done.exitCode, 3);
        for (const QString& better : commands)
          QVERIFY2(done.err.contains("`" + better.toUtf8() + "`"), done.err.constData());
      }
    }
    QCOMPARE(cli({"export", plan}).exitCode, 0);
    QCOMPARE(cli({"export", folderOfModel}).exitCode, 0);
  }

  void aPlanWithoutItsModelIsCheckedInPart() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json"), config = folder.filePath("config.json");
    QVERIFY(QFile::copy(model("llama") + "/config.json", config));
    QCOMPARE(cli({"plan", config, "--seq", "16", "--json", file}).exitCode, 0);
    QCOMPARE(cli({"check", file}).exitCode, 0);
    QVERIFY(QFile::remove(config));
    const Finished alone = cli({"check", file});
    QCOMPARE(alone.exitCode, 3);
    QVERIFY2(alone.out.contains("follow from the plan's own graph"), alone.out.constData());
    QVERIFY2(alone.err.contains("Without the model, these are not checked: the graph"), alone.err.constData());
  }

  void rulesAnswerLineByLine() {
    const Finished done = cli(
        {"rules", "--eval", "-"},
        "{\"op\":\"aten::sum.dim_IntList\",\"args\":[{\"tensor\":[2,8,4],\"placement\":\"S(1)\"},[2],false],\"ranks\":"
        "2}\n"
        "{\"op\":\"aten::sum.dim_IntList\",\"args\":[{\"tensor\":[2,8,4],\"placement\":\"S(1)\"},[1]],\"ranks\":2}\n"
        "{\"op\":\"aten::linear\",\"args\":[{\"tensor\":[1,4,8],\"placement\":\"R\"},{\"tensor\":[16,8]}],\"ranks\":2}"
        "\n");
    const auto lines = done.out.trimmed().split('\n');
    QCOMPARE(lines.size(), 3);
    QCOMPARE(lines[0], QByteArray("{\"out\":[\"S(1)\"]}"));
    QVERIFY2(lines[1].startsWith("{\"conflict\":"), lines[1].constData());
    QVERIFY2(lines[2].startsWith("{\"out\":[\"S(2)\",\"R\"]"), lines[2].constData());
    QCOMPARE(done.exitCode, 0);
    QCOMPARE(cli({"rules", "--eval", "-"}, "not json\n").exitCode, 3);
  }

  void rulesAreProvedOnRequest() {
    const Finished done = cli({"rules", "--verify", "--op", "aten::softmax.int"});
    QVERIFY2(done.exitCode == 0 && done.out.contains("all claims hold"), (done.out + done.err).constData());
    QCOMPARE(cli({"rules", "--verify", "--op", "aten::no_such_operator"}).exitCode, 2);
  }

  void badUsageExitsTwoAndBadInputThree_data() {
    const Rows<QStringList, int, QString> row("arguments", "exitCode", "phrase");
    row("no command", QStringList{}, 2, "subcommand");
    row("unknown flag", QStringList{"plan", model("llama"), "--rank", "2"}, 2, "--rank");
    row("zero ranks", QStringList{"plan", model("llama"), "--ranks", "0"}, 2, "0 ranks");
    row("no whole number", QStringList{"plan", model("llama"), "--ranks", "1.5"}, 2,
        "--ranks is \"1.5\": write a whole number");
    row("text as JSON", QStringList{"trace", "x.trace", "--text", "--json"}, 2, "excludes");
    row("no such engine", QStringList{"plan", model("llama"), "--engine", "best"}, 2, "\"best\"");
    row("pin matches nothing", QStringList{"plan", model("llama"), "--pin", "lm_heads=row"}, 2, "lm_head");
    row("pin without form", QStringList{"plan", model("llama"), "--pin", "lm_head"}, 2, "lm_head");
    row("no such folder", QStringList{"plan", "./absent"}, 3, "./absent");
    row("not a plan", QStringList{"check", model("llama/model.safetensors.index.json")}, 3, "schema");
  }
  void badUsageExitsTwoAndBadInputThree() {
    QFETCH(QStringList, arguments);
    QFETCH(int, exitCode);
    QFETCH(QString, phrase);
    const Finished done = cli(arguments);
    QVERIFY2(done.exitCode == exitCode, done.err.constData());
    QVERIFY2(QString::fromUtf8(done.err).contains(phrase), done.err.constData());
    QVERIFY(done.out.isEmpty());
  }
};

QTEST_GUILESS_MAIN(TestCliPlan)
#include "tst_cli_plan.moc"
