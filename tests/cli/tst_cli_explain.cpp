#include "tests/support/cli_json.h"
#include "tests/support/rows.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>

using namespace cleave::test;

/// Questions about a plan: why, why not, what else.
namespace {

/// Writes a config.json with these values and the usual ones.
bool writeLlama(const QTemporaryDir& folder, QJsonObject values) {
  values["architectures"] = QJsonArray{"LlamaForCausalLM"};
  values["model_type"] = "llama";
  values["hidden_act"] = "silu";
  values["rope_theta"] = 10000.0;
  values["tie_word_embeddings"] = false;
  values["attention_bias"] = false;
  QFile config(folder.filePath("config.json"));
  return config.open(QIODevice::WriteOnly) && config.write(QJsonDocument(values).toJson()) > 0;
}

}  // namespace

class TestCliExplain : public QObject {
  Q_OBJECT
 private slots:
  void whyLeadsFromAValueToTheChoice() {
    const QJsonObject answer =
        json({"explain", model("llama"), "--engine", "reference", "--value", "model.layers.1.mlp.up_proj"});
    QCOMPARE(answer["placement"].toString(), QString("S(2)"));
    const QJsonArray chain = answer["why"].toArray();
    QVERIFY(!chain.isEmpty());
    QVERIFY(chain.last().toObject()["free"].toBool());
    QVERIFY(!chain.last().toObject()["alternatives"].toArray().isEmpty());
  }

  void whyNotNamesWhatForbidsIt() {
    const QJsonObject answer = json({"explain", model("llama"), "--engine", "reference", "--value",
                                     "model.layers.1.mlp.up_proj", "--placement", "S(1)"});
    QCOMPARE(answer["answer"].toString(), QString("impossible"));
    QVERIFY(!answer["sentences"].toArray().isEmpty());
  }

  /// Settings that the answer names give the placement, as flags.
  void whyNotNamesSettingsThatGiveIt() {
    const QStringList asked{"--value", "mul_1", "--placement", "S(1)"};
    const QJsonObject answer = json(QStringList{"explain", bundled("tiny-llama"), "--ranks", "2"} + asked);
    QCOMPARE(answer["answer"].toString(), QString("impossible"));
    QCOMPARE(answer["elsewhere"].toArray(),
             (QJsonArray{"let the solver decide on sequence parallelism", "pin mul_1=S(1)"}));
    QCOMPARE(cli({"plan", bundled("tiny-llama"), "--ranks", "2", "--pin", "mul_1=S(1)"}).exitCode, 1);
    QCOMPARE(cli({"plan", bundled("tiny-llama"), "--ranks", "2", "--sequence-parallel", "auto", "--pin", "mul_1=S(1)"})
                 .exitCode,
             0);
  }

  /// Plans name modules, so `--value` accepts them.
  void aModuleNamesItsResult() {
    const QJsonObject norm = json({"explain", bundled("tiny-llama"), "--value", "model.norm"});
    QCOMPARE(norm["value"].toString(), QString("mul_21"));
    for (const char* name : {"model.layers.*.mlp", "model.layers.{0-1}.mlp"}) {
      const Finished several = cli({"explain", bundled("tiny-llama"), "--value", name});
      QCOMPARE(several.exitCode, 2);
      QVERIFY2(several.err.contains("matches 2 modules. Name one of them, such as model.layers.0.mlp."),
               several.err.constData());
    }
    QCOMPARE(json({"explain", bundled("tiny-llama"), "--value", "mod*.norm"})["value"], norm["value"]);
  }

  void theOptimumSaysWhatOtherFormsCost() {
    const QJsonObject answer =
        json({"explain", model("llama"), "--engine", "optimal", "--value", "model.layers.1.mlp.up_proj"});
    const QJsonArray regrets = answer["regrets"].toArray();
    QVERIFY(regrets.size() >= 2);
    int chosen = 0, priced = 0;
    for (const QJsonValue& regret : regrets) {
      chosen += regret["chosen"].toBool();
      if (regret["extra_fs"].isNull()) continue;
      ++priced;
      QVERIFY(regret["extra_fs"].toInteger() >= 0);
    }
    QCOMPARE(chosen, 1);
    QVERIFY(priced >= 2);
  }

  /// 126 layers of 16384 features on 4 devices of 80 GiB: memory is the obstacle, not a size.
  void aBudgetFailureNamesBytesAndWhatFits() {
    const QTemporaryDir folder;
    QVERIFY(writeLlama(folder, {{"max_position_embeddings", 4096},
                                {"rms_norm_eps", 1e-5},
                                {"torch_dtype", "bfloat16"},
                                {"hidden_size", 16384},
                                {"num_hidden_layers", 126},
                                {"num_attention_heads", 128},
                                {"num_key_value_heads", 8},
                                {"intermediate_size", 53248},
                                {"vocab_size", 128256}}));
    const Finished done = cli({"explain", folder.path(), "--ranks", "4", "--json", "-"});
    QCOMPARE(done.exitCode, 1);
    const QJsonObject answer = QJsonDocument::fromJson(done.out).object();
    const QJsonArray constraints = answer["core"].toObject()["constraints"].toArray();
    QCOMPARE(constraints.size(), 1);
    const QString budget = constraints[0].toObject()["text"].toString();
    QVERIFY2(budget.startsWith("No plan for 4 ranks fits the memory budget of 80 GiB per rank"), qPrintable(budget));
    const QString text = answer["over_budget"].toString();
    for (const char* part : {"budget of 80 GiB", "too large", "GiB parameters"})
      QVERIFY2(text.contains(QLatin1String(part)), qPrintable(text));
    QVERIFY2(!text.contains("divide") && !budget.contains("divide"), qPrintable(text));
    const Finished planned = cli({"plan", folder.path(), "--ranks", "4"});
    QVERIFY2(planned.err.contains(text.toUtf8()), planned.err.constData());
    const QJsonArray fits = answer["fits"].toArray();
    QVERIFY(!fits.isEmpty());
    // Each offer must work.
    for (const QJsonValue& offered : fits) {
      const QJsonObject fit = offered.toObject();
      const QString flags = fit["flags"].toString();
      const QStringList ranks = flags.startsWith("--ranks") ? QStringList() : QStringList{"--ranks", "4"};
      const QJsonObject plan = json(QStringList{"plan", folder.path()} + ranks + flags.split(' '));
      QCOMPARE(stepFs(plan), fit["step_fs"].toInteger());
      QCOMPARE(plan["cost"].toObject()["rank_bytes"].toInteger(), fit["rank_bytes"].toInteger());
    }
  }

  /// A pin gives each placement that is said to be possible, and no other.
  void whyNotAgreesWithPins_data() {
    const Rows<QString> row("engine");
    row("optimal", "optimal");
    row("learning", "learning");
  }
  void whyNotAgreesWithPins() {
    QFETCH(QString, engine);
    const QTemporaryDir folder;
    QVERIFY(writeLlama(folder, {{"max_position_embeddings", 128},
                                {"rms_norm_eps", 1e-6},
                                {"torch_dtype", "float32"},
                                {"hidden_size", 64},
                                {"num_hidden_layers", 1},
                                {"num_attention_heads", 8},
                                {"num_key_value_heads", 4},
                                {"intermediate_size", 112},
                                {"vocab_size", 256}}));
    const QStringList asked{folder.path(), "--ranks", "8", "--engine", engine};
    int had = 0, denied = 0;
    // Keys before they are repeated, and repeated keys and values.
    for (const QString value : {"view_4", "view_6", "view_7"}) {
      for (const QString placement : {"S(1)", "S(2)"}) {
        const QString pin = value + "=" + placement;
        const QString answer =
            json(QStringList{"explain"} + asked + QStringList{"--value", value, "--placement", placement})["answer"]
                .toString();
        const Finished pinned = cli(QStringList{"plan"} + asked + QStringList{"--pin", pin, "--json", "-"});
        const bool isDenied = answer == "impossible" || answer == "forbidden";
        QVERIFY2(!answer.isEmpty() && answer != "not_known", qPrintable(pin + ": " + answer));
        QVERIFY2(pinned.exitCode == (isDenied ? 1 : 0),
                 qPrintable(QString("%1: %2, but its plan ends with %3").arg(pin, answer).arg(pinned.exitCode)));
        (isDenied ? denied : had) += 1;
        if (isDenied) continue;
        QString placed;
        for (const QJsonValue& each : QJsonDocument::fromJson(pinned.out).object()["values"].toArray()) {
          if (each.toObject()["name"].toString() == value) placed = each.toObject()["placement"].toString();
        }
        QCOMPARE(placed, placement);
      }
    }
    QVERIFY2(had >= 2 && denied >= 2, qPrintable(QString("%1 had, %2 denied").arg(had).arg(denied)));
  }

  /// The fastest plan that another engine finds is not attributed to this one.
  void theEngineOfTheFastestPlanIsNamed() {
    for (const char* engine : {"reference", "optimal"}) {
      const QStringList asked{bundled("one-kv-head"), "--ranks", "4", "--engine", engine, "--candidates", "optimum"};
      for (const char* command : {"plan", "explain"}) {
        const Finished done = cli(QStringList{command} + asked);
        const bool isOwn = engine == QByteArray("optimal");
        QCOMPARE(done.out.contains("it can be split, which "), isOwn);
        QCOMPARE(done.out.contains("it can be split with --engine optimal, which "), !isOwn);
      }
    }
  }

  void explainCountsSplitLayers() {
    for (const char* engine : {"optimal", "reference"}) {
      const QStringList asked{model("llama"), "--engine", engine};
      const Finished done = cli(QStringList{"explain"} + asked);
      const QJsonObject shares = json(QStringList{"plan"} + asked)["shares"].toObject();
      const double held = 100.0 * shares["rank_weight_bytes"].toDouble() / shares["weight_bytes"].toDouble();
      const QByteArray percent =
          held == 100 ? QByteArray("100") : QByteArray::number(std::floor(held * 10) / 10, 'f', 1);
      QVERIFY2(done.out.contains("Per rank: " + percent + " % of the weights"), done.out.constData());
      QVERIFY2(done.out.contains(QByteArray::number(shares["split_layers"].toInt()) + " of " +
                                 QByteArray::number(shares["layers"].toInt())),
               done.out.constData());
    }
  }

  /// Heads that do not divide come before the count of split layers.
  void explainSaysHeadsFirst() {
    for (const char* engine : {"optimal", "reference"}) {
      const Finished done = cli({"explain", bundled("three-heads"), "--ranks", "2", "--seq", "16", "--engine", engine});
      const auto heads = done.out.indexOf("3 heads do not divide by 2 ranks"),
                 shares = done.out.indexOf("layers with weights are split");
      QVERIFY2(heads >= 0 && heads < shares, done.out.constData());
    }
  }

  void anAnswerSaysNothingTwice() {
    for (const char* placement : {"row", "replicated", "column", "vocab"}) {
      for (const char* layer : {"lm_head", "model.layers.0.self_attn.k_proj", "model.embed_tokens"}) {
        const Finished done =
            cli({"explain", model("llama"), "--value", layer, "--placement", placement, "--engine", "learning"});
        QVERIFY2(done.exitCode == 0, done.err.constData());
        QList<QByteArray> lines = done.out.split('\n');
        lines.removeAll(QByteArray());
        QVERIFY(!lines.isEmpty());
        std::sort(lines.begin(), lines.end());
        QVERIFY2(std::adjacent_find(lines.begin(), lines.end()) == lines.end(), done.out.constData());
        QVERIFY2(done.out.toLower().count("to get it") <= 1, done.out.constData());
      }
    }
  }

  /// Logits of all positions are the peak. The answer names it and offers settings without them.
  void aBudgetFailureByLogitsOffersFewerLogits() {
    const QStringList asked{model("llama"), "--ranks", "2", "--batch", "64", "--seq", "64"};
    const qint64 needs = json(QStringList{"plan"} + asked)["cost"].toObject()["rank_bytes"].toInteger();
    const QStringList bound{"--memory-budget", QString::number(needs / 2)};
    const Finished done = cli(QStringList{"explain"} + asked + bound + QStringList{"--json", "-"});
    QCOMPARE(done.exitCode, 1);
    const QJsonObject answer = QJsonDocument::fromJson(done.out).object();
    QVERIFY2(answer["over_budget"].toString().contains("The transient peak is"), done.out.constData());
    bool isOffered = false;
    for (const QJsonValue& offered : answer["fits"].toArray()) {
      const QString flags = offered.toObject()["flags"].toString();
      if (!flags.contains("--loss off")) continue;
      isOffered = true;
      const QJsonObject plan = json(QStringList{"plan"} + asked + bound + flags.split(' '));
      QCOMPARE(plan["cost"].toObject()["rank_bytes"].toInteger(), offered.toObject()["rank_bytes"].toInteger());
    }
    QVERIFY2(isOffered, done.out.constData());
  }

  void noPlanIsExplainedByItsPinAndRemedied() {
    const Finished done = cli({"explain", model("llama"), "--engine", "learning", "--candidates", "optimum", "--pin",
                               "lm_head=row", "--json", "-"});
    QCOMPARE(done.exitCode, 1);
    const QJsonObject answer = QJsonDocument::fromJson(done.out).object();
    QVERIFY(!answer["solved"].toBool(true));
    bool namesPin = false;
    for (const QJsonValue& constraint : answer["core"].toObject()["constraints"].toArray()) {
      namesPin |= constraint["lift"].toString() == "lm_head=row";
    }
    QVERIFY2(namesPin, done.out.constData());
    const QJsonArray remedies = answer["remedies"].toArray();
    QVERIFY(!remedies.isEmpty());
    QVERIFY(remedies[0]["before"].isNull());
    QVERIFY(remedies[0]["after"].toObject()["split_layers"].toInt() > 0);
  }

  void learningAnswersAsTheReferenceInFewerTries() {
    const QStringList pinned{"plan", model("llama"), "--pin", "lm_head=row", "--engine"};
    const QJsonObject reference = json(pinned + QStringList{"reference"}, 1),
                      learning = json(pinned + QStringList{"learning", "--candidates", "optimum"}, 1);
    const auto tries = [](const QJsonObject& plan) { return plan["search"].toObject()["tries"].toInt(); };
    QVERIFY(tries(learning) > 0);
    QVERIFY2(tries(learning) * 2 < tries(reference),
             qPrintable(QString("%1 of %2").arg(tries(learning)).arg(tries(reference))));
  }

  /// The offered pin gives exactly the strategy of the question, at the printed cost.
  void theOfferedPinGivesIt_data() {
    QTest::addColumn<QString>("layer");
    QTest::addColumn<QString>("strategy");
    QTest::addColumn<QString>("kind");  // of the answer
    const auto row = [](const char* strategy, const char* ofKeys, const char* ofDown) {
      const char* const keys = "model.layers.0.self_attn.k_proj";
      const char* const down = "model.layers.1.mlp.down_proj";
      QTest::addRow("%s of keys", strategy) << keys << strategy << ofKeys;
      QTest::addRow("%s of down", strategy) << down << strategy << ofDown;
    };
    row("column", "costs", "forbidden");
    row("gather+column", "costs", "forbidden");
    row("column+gather", "costs", "costs");
    row("whole", "is_so", "is_so");
    row("row", "forbidden", "costs");
    row("row+scatter", "forbidden", "costs");
  }
  void theOfferedPinGivesIt() {
    QFETCH(QString, layer);
    QFETCH(QString, strategy);
    QFETCH(QString, kind);
    const QStringList base{model("llama"), "--seq", "64", "--sequence-parallel", "auto", "--device-profile", "cpu"};
    const QJsonObject answer =
        json(QStringList{"explain"} + base + QStringList{"--value", layer, "--placement", strategy});
    const QString pin = answer["pin"].toString();
    QCOMPARE(answer["answer"].toString(), kind);
    QCOMPARE(pin.isEmpty(), kind != "costs");
    if (pin.isEmpty()) return;
    const QJsonObject before = json(QStringList{"plan"} + base),
                      after = json(QStringList{"plan"} + base + QStringList{"--pin", pin});
    QString chosen;
    for (const QJsonValue& entry : after["layers"].toArray()) {
      if (entry["name"].toString() == layer) chosen = entry["strategy"].toString();
    }
    QCOMPARE(chosen, strategy);
    QCOMPARE(stepFs(after) - stepFs(before), answer["extra_fs"].toInteger());
  }

  /// `plan` and `explain` name the same conflicting demands, and no others.
  void conflictsAreTheSameEverywhere() {
    const QStringList flags{model("llama"), "--engine", "learning",       "--candidates", "optimum",        "--pin",
                            "lm_head=row",  "--pin",    "*q_proj=column", "--pin",        "*up_proj=column"};
    const Finished planned = cli(QStringList{"plan"} + flags),
                   explained = cli(QStringList{"explain"} + flags + QStringList{"--json", "-"});
    QCOMPARE(planned.exitCode, 1);
    QCOMPARE(explained.exitCode, 1);
    const QJsonObject core = QJsonDocument::fromJson(explained.out).object()["core"].toObject();
    QVERIFY(core["irreducible"].toBool());
    QStringList lifts;
    for (const QJsonValue& constraint : core["constraints"].toArray()) {
      QVERIFY2(planned.err.contains(constraint["text"].toString().toUtf8()), planned.err.constData());
      if (constraint["lift"].isString()) lifts << constraint["lift"].toString();
    }
    QCOMPARE(lifts, QStringList{"lm_head=row"});
    QVERIFY2(!planned.err.contains("q_proj=column"), planned.err.constData());
  }

  void badQuestionsExitTwo_data() {
    const Rows<QStringList, QString> row("arguments", "phrase");
    row("no such value", QStringList{"explain", model("llama"), "--value", "up_proj_9"}, "up_proj_9");
    row("no placement", QStringList{"explain", model("llama"), "--value", "lm_head", "--placement", "sideways"},
        "sideways");
    row("placement of nothing", QStringList{"explain", model("llama"), "--placement", "R"}, "--value");
    row("no side", QStringList{"compare", model("llama"), "reference,fastest"}, "fastest");
    row("a negative seed", QStringList{"plan", model("llama"), "--seed", "-1"}, "--seed");
    row("one side", QStringList{"compare", model("llama"), "reference"}, "two");
    row("no sizes", QStringList{"world-sizes", model("llama"), "--sizes", "4-2"}, "4-2");
    row("no device", QStringList{"plan", model("llama"), "--device-profile", "abacus"}, "h100");
    row("no size", QStringList{"plan", model("llama"), "--memory-budget", "lots"}, "lots");
    row("no optimizer", QStringList{"plan", model("llama"), "--train", "--optimizer", "magic"}, "adamw");
    row("rule of nothing", QStringList{"plan", model("llama"), "--rule-off", "aten::no_such_op"}, "aten::no_such_op");
    row("a question without a trace", QStringList{"best", model("llama"), "--trace", "x.trace"}, "--trace");
    row("no sides", QStringList{"compare", model("llama")}, "SIDES");
    row("an empty side", QStringList{"compare", model("llama"), ""}, "is one side: compare two or more");
  }
  void badQuestionsExitTwo() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, phrase);
    const Finished done = cli(arguments);
    QVERIFY2(done.exitCode == 2, done.err.constData());
    QVERIFY2(QString::fromUtf8(done.err).contains(phrase), done.err.constData());
    QVERIFY(done.out.isEmpty());
  }
};

QTEST_GUILESS_MAIN(TestCliExplain)
#include "tst_cli_explain.moc"
