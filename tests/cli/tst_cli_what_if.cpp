#include "tests/support/cli_json.h"

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

/// Questions before the choice of a plan: other engines, budgets, slack, the Pareto front, other world sizes.
class TestCliWhatIf : public QObject {
  Q_OBJECT
 private slots:
  void theOptimumIsNeverDearer_data() {
    QTest::addColumn<QStringList>("flags");
    QTest::newRow("inference") << QStringList{};
    QTest::newRow("training") << QStringList{"--train"};
    QTest::newRow("sequence parallel") << QStringList{"--sequence-parallel", "auto", "--ranks", "4"};
    QTest::newRow("a slow device") << QStringList{"--device-profile", "cpu", "--seq", "512"};
  }
  void theOptimumIsNeverDearer() {
    QFETCH(QStringList, flags);
    const QStringList base = QStringList{"plan", model("llama"), "--candidates", "full"} + flags;
    const QJsonObject optimal = json(base + QStringList{"--engine", "optimal", "--slack", "0"}),
                      reference = json(base + QStringList{"--engine", "reference"});
    QVERIFY(optimal["cost"].toObject()["proved"].toBool());
    QVERIFY(!reference["cost"].toObject()["proved"].toBool());
    QVERIFY2(stepFs(optimal) > 0 && stepFs(optimal) <= stepFs(reference),
             qPrintable(QString("%1 against %2").arg(stepFs(optimal)).arg(stepFs(reference))));
  }

  void aBudgetIsKeptOrTheAnswerIsNo() {
    const QJsonObject whole = json({"plan", model("llama"), "--engine", "optimal"});
    const qint64 bytes = whole["cost"].toObject()["rank_bytes"].toInteger();
    const qint64 budget = bytes * 3 / 4;
    const QJsonObject tight =
        json({"plan", model("llama"), "--engine", "optimal", "--memory-budget", QString::number(budget)});
    const QJsonObject cost = tight["cost"].toObject();
    QVERIFY(cost["rank_bytes"].toInteger() > 0 && cost["rank_bytes"].toInteger() <= budget);
    QVERIFY(stepFs(tight) >= stepFs(whole));
    const Finished none = cli({"plan", model("llama"), "--engine", "optimal", "--memory-budget", "4KiB"});
    QCOMPARE(none.exitCode, 1);
    QVERIFY2(none.err.contains("4 KiB"), none.err.constData());
  }

  void slackTradesTimeForMemory() {
    const auto cost = [&](const QString& slack) {
      return json({"plan", model("llama"), "--ranks", "4", "--slack", slack})["cost"].toObject();
    };
    const QJsonObject fastest = cost("0"), leaner = cost("1000");
    QCOMPARE(fastest["slack_percent"].toDouble(), 0.0);
    QCOMPARE(fastest["fastest"]["step_fs"].toInteger(), fastest["step_fs"].toInteger());
    QCOMPARE(leaner["fastest"]["step_fs"].toInteger(), fastest["step_fs"].toInteger());
    QVERIFY(leaner["step_fs"].toInteger() > fastest["step_fs"].toInteger());
    QVERIFY(leaner["rank_bytes"].toInteger() < fastest["rank_bytes"].toInteger());
    const Finished text = cli({"plan", model("llama"), "--ranks", "4", "--slack", "1000"});
    QVERIFY2(text.out.contains("least memory among all plans within 1000 % of the fastest"), text.out.constData());
    QCOMPARE(cli({"plan", model("llama"), "--slack", "-1"}).exitCode, 2);
  }

  /// 70 billion parameters on a CPU: a step takes hours, more femtoseconds than 64 bits can count.
  void aStepOfHoursIsAnsweredLikeAnyOther() {
    QTemporaryDir folder;
    QFile config(folder.filePath("config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(
        R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,)"
        R"( "vocab_size": 128256, "rms_norm_eps": 1e-5,
      "rope_theta": 500000.0, "max_position_embeddings": 8192, "tie_word_embeddings": false,)"
        R"( "torch_dtype": "bfloat16"})");
    config.close();
    const QStringList asked{folder.path(), "--device-profile", "cpu", "--ranks", "2", "--seq", "8192", "--batch", "8"};
    const QStringList roomy = asked + QStringList{"--memory-budget", "9000GiB"};
    const QJsonObject plan = json(QStringList{"plan", "--train"} + roomy);
    QCOMPARE(plan["engine"].toString(), QString("optimal"));
    QVERIFY(plan["cost"].toObject()["proved"].toBool());
    QVERIFY(plan["cost"].toObject()["step_ms"].toDouble() > 9'300'000);
    const Finished none = cli(QStringList{"plan"} + asked + QStringList{"--memory-budget", "1GiB"});
    QCOMPARE(none.exitCode, 1);
    QVERIFY2(none.err.contains("1 GiB"), none.err.constData());
    QVERIFY(!json(QStringList{"pareto"} + roomy)["points"].toArray().isEmpty());
    QCOMPARE(json(QStringList{"best", "--count", "3"} + roomy)["plans"].toArray().size(), 3);
  }

  void theFrontFalls() {
    const QJsonArray points = json({"pareto", model("llama")})["points"].toArray();
    QVERIFY(!points.isEmpty());
    for (qsizetype i = 1; i < points.size(); ++i) {
      QVERIFY(points[i]["step_fs"].toInteger() > points[i - 1]["step_fs"].toInteger());
      QVERIFY(points[i]["rank_bytes"].toInteger() < points[i - 1]["rank_bytes"].toInteger());
    }
    for (const QJsonValue& point : points) {
      const QJsonObject again = json({"plan", model("llama"), "--slack", "0", "--memory-budget",
                                      QString::number(point["memory_budget"].toInteger())});
      QCOMPARE(stepFs(again), point["step_fs"].toInteger());
      QCOMPARE(again["cost"].toObject()["rank_bytes"].toInteger(), point["rank_bytes"].toInteger());
    }
  }

  void plansAreComparedByEngineAndByFile() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", model("llama"), "--engine", "reference", "--json", file}).exitCode, 0);
    const QJsonObject same = json({"compare", model("llama"), "reference," + file});
    QCOMPARE(same["schema"].toString(), QString("cleave.diff/1"));
    QVERIFY(same["layers"].toArray().isEmpty());
    const QJsonObject other = json({"compare", model("llama"), "reference,optimal", "--candidates", "optimum"});
    QVERIFY(!other["layers"].toArray().isEmpty());
    // The answer is one document for any number of sides.
    const QJsonObject three =
        json({"compare", model("llama"), "reference,optimal,learning", "--candidates", "optimum"});
    QCOMPARE(three["schema"].toString(), QString("cleave.diffs/1"));
    QCOMPARE(three["diffs"].toArray().size(), 2);
    QCOMPARE(three["diffs"][0].toObject(), other);
    const Finished text = cli({"compare", model("llama"), "reference,optimal"});
    QVERIFY2(text.exitCode == 0 && text.out.contains("reference"), text.err.constData());
  }

  void worldSizesSayWhyNot() {
    const QJsonObject answer = json({"world-sizes", bundled("three-heads"), "--engine", "learning", "--candidates",
                                     "optimum", "--seq", "16", "--sizes", "1-4"});
    const QJsonArray sizes = answer["world_sizes"].toArray();
    QCOMPARE(sizes.size(), 4);
    QCOMPARE(sizes[0]["verdict"].toString(), QString("works"));
    QCOMPARE(sizes[1]["verdict"].toString(), QString("partly"));
    QCOMPARE(sizes[1]["heads"].toString(), QString("3 heads do not divide by 2 ranks"));
    QVERIFY2(sizes[1]["why"].toString().startsWith("3 heads do not divide by 2 ranks; "),
             qPrintable(sizes[1]["why"].toString()));
  }

  /// Each reason is printed once. A row over the budget has the excess.
  void worldSizesFitInAHundredColumns() {
    const QStringList arguments{"world-sizes", model("llama"), "--sizes", "1-9", "--memory-budget", "400KB"};
    const Finished done = cli(arguments);
    QCOMPARE(done.exitCode, 0);
    const QString text = QString::fromUtf8(done.out);
    for (const QString& line : text.split('\n')) QVERIFY2(line.size() <= 100, qPrintable(line));
    const QJsonArray sizes = json(arguments)["world_sizes"].toArray();
    int over = 0;
    QString nearest;
    qint64 least = 0;
    for (const QJsonValue& size : sizes) {
      if (size["verdict"] != "over the budget") continue;
      ++over;
      const qint64 bytes = size["over_budget_bytes"].toInteger();
      QCOMPARE(bytes, size["rank_bytes"].toInteger() - 400'000);
      if (nearest.isEmpty() || bytes < least) nearest = size["why"].toString(), least = bytes;
    }
    QVERIFY2(over > 1 && over < sizes.size(), qPrintable(text));
    QCOMPARE(text.count(" over by "), over);
    QCOMPARE(text.simplified().count(nearest), 1);
    QCOMPARE(text.count("too large"), 1);
  }

  void preflightNeedsNoSearch() {
    const QJsonObject answer = json({"preflight", bundled("three-heads"), "--ranks", "2"});
    QCOMPARE(answer["schema"].toString(), QString("cleave.preflight/1"));
    QVERIFY(answer["operators_without_rule"].toArray().isEmpty());
    QVERIFY(answer["replicated_bytes"].toInteger() > 0);
  }
};

QTEST_APPLESS_MAIN(TestCliWhatIf)
#include "tst_cli_what_if.moc"
