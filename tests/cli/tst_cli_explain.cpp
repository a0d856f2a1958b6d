#include "cli/cli_process.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

QString model(const char* name) { return QStringLiteral(CLEAVE_TEST_DATA "/models/") + name; }
QString bundled(const char* name) { return QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/") + name; }

QJsonObject json(const QStringList& arguments, int expectedExit = 0) {
  const Finished done = cli(arguments + QStringList{"--json", "-"});
  if (done.exitCode != expectedExit) qWarning("exit %d: %s", done.exitCode, done.err.constData());
  return done.exitCode == expectedExit ? QJsonDocument::fromJson(done.out).object() : QJsonObject();
}

qint64 stepFs(const QJsonObject& plan) { return plan["cost"].toObject()["step_fs"].toInteger(); }

}  // namespace

/// What a user asks beyond a plan: why, why not, what else, what if.
class TestCliExplain : public QObject {
  Q_OBJECT
 private slots:
  void whyLeadsFromAValueToTheChoice() {
    const QJsonObject answer = json({"explain", model("llama"), "--engine", "reference", "--value", "model.layers.1.mlp.up_proj"});
    QCOMPARE(answer["placement"].toString(), QString("S(2)"));
    const QJsonArray chain = answer["why"].toArray();
    QVERIFY(!chain.isEmpty());
    QVERIFY(chain.last().toObject()["free"].toBool());
    QVERIFY(!chain.last().toObject()["alternatives"].toArray().isEmpty());
  }

  void whyNotNamesWhatForbidsIt() {
    const QJsonObject answer =
        json({"explain", model("llama"), "--engine", "reference", "--value", "model.layers.1.mlp.up_proj", "--placement", "S(1)"});
    QVERIFY2(answer["answer"] == "forbidden" || answer["answer"] == "impossible", qPrintable(answer["answer"].toString()));
    QVERIFY(!answer["sentences"].toArray().isEmpty());
  }

  void theOptimumSaysWhatOtherFormsCost() {
    const QJsonObject answer = json({"explain", model("llama"), "--engine", "optimal", "--value", "model.layers.1.mlp.up_proj"});
    const QJsonArray regrets = answer["regrets"].toArray();
    QVERIFY(regrets.size() >= 2);
    int chosen = 0;
    for (const QJsonValue& regret : regrets) {
      chosen += regret["chosen"].toBool();
      if (!regret["extra_fs"].isNull()) QVERIFY(regret["extra_fs"].toInteger() >= 0);
    }
    QCOMPARE(chosen, 1);
  }

  void noPlanIsExplainedByItsPinAndRemedied() {
    const Finished done = cli({"explain", model("llama"), "--engine", "learning", "--menu", "optimum", "--pin", "lm_head=row", "--json", "-"});
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
    const QJsonObject reference = json(pinned + QStringList{"reference"}, 1), learning = json(pinned + QStringList{"learning", "--menu", "optimum"}, 1);
    const auto tries = [](const QJsonObject& plan) { return plan["search"].toObject()["tries"].toInt(); };
    QVERIFY(tries(learning) > 0);
    QVERIFY2(tries(learning) * 2 < tries(reference), qPrintable(QString("%1 of %2").arg(tries(learning)).arg(tries(reference))));
  }

  void theOptimumIsNeverDearer_data() {
    QTest::addColumn<QStringList>("flags");
    QTest::newRow("inference") << QStringList{};
    QTest::newRow("training") << QStringList{"--train"};
    QTest::newRow("sequence parallel") << QStringList{"--sequence-parallel", "auto", "--ranks", "4"};
    QTest::newRow("a slow device") << QStringList{"--device-profile", "cpu", "--seq", "512"};
  }
  void theOptimumIsNeverDearer() {
    QFETCH(QStringList, flags);
    const QStringList base = QStringList{"plan", model("llama"), "--menu", "full"} + flags;
    const QJsonObject optimal = json(base + QStringList{"--engine", "optimal"}), reference = json(base + QStringList{"--engine", "reference"});
    QVERIFY(optimal["cost"].toObject()["proved"].toBool());
    QVERIFY(!reference["cost"].toObject()["proved"].toBool());
    QVERIFY2(stepFs(optimal) > 0 && stepFs(optimal) <= stepFs(reference), qPrintable(QString("%1 against %2").arg(stepFs(optimal)).arg(stepFs(reference))));
  }

  void aBudgetIsKeptOrTheAnswerIsNo() {
    const QJsonObject whole = json({"plan", model("llama"), "--engine", "optimal"});
    const qint64 bytes = whole["cost"].toObject()["rank_bytes"].toInteger();
    const qint64 budget = bytes * 3 / 4;
    const QJsonObject tight = json({"plan", model("llama"), "--engine", "optimal", "--memory-budget", QString::number(budget)});
    const QJsonObject cost = tight["cost"].toObject();
    QVERIFY(cost["rank_bytes"].toInteger() > 0 && cost["rank_bytes"].toInteger() <= budget);
    QVERIFY(stepFs(tight) >= stepFs(whole));
    const Finished none = cli({"plan", model("llama"), "--engine", "optimal", "--memory-budget", "4KiB"});
    QCOMPARE(none.exitCode, 1);
    QVERIFY2(none.err.contains("4 KiB"), none.err.constData());
  }

  void theFrontFallsAndTheBestPlansRise() {
    const QJsonArray points = json({"plan", model("llama"), "--pareto"})["points"].toArray();
    QVERIFY(!points.isEmpty());
    for (qsizetype i = 1; i < points.size(); ++i) {
      QVERIFY(points[i]["step_fs"].toInteger() > points[i - 1]["step_fs"].toInteger());
      QVERIFY(points[i]["bytes"].toInteger() < points[i - 1]["bytes"].toInteger());
    }
    const QJsonArray plans = json({"plan", model("llama"), "--best", "4"})["plans"].toArray();
    QCOMPARE(plans.size(), 4);
    for (qsizetype i = 1; i < plans.size(); ++i) QVERIFY(plans[i]["step_fs"].toInteger() >= plans[i - 1]["step_fs"].toInteger());
  }

  void plansAreComparedByEngineAndByFile() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", model("llama"), "--engine", "reference", "--json", file}).exitCode, 0);
    const QJsonObject same = json({"plan", model("llama"), "--compare", "reference," + file});
    QCOMPARE(same["schema"].toString(), QString("cleave.diff/1"));
    QVERIFY(same["layers"].toArray().isEmpty());
    const QJsonObject other = json({"plan", model("llama"), "--menu", "optimum", "--compare", "reference,optimal"});
    QVERIFY(!other["layers"].toArray().isEmpty());
    const Finished text = cli({"plan", model("llama"), "--compare", "reference,optimal"});
    QVERIFY2(text.exitCode == 0 && text.out.contains("reference"), text.err.constData());
  }

  void worldSizesSayWhyNot() {
    const QJsonObject answer = json({"plan", bundled("three-heads"), "--engine", "learning", "--menu", "optimum", "--seq", "16", "--world-sizes", "1-4"});
    const QJsonArray sizes = answer["world_sizes"].toArray();
    QCOMPARE(sizes.size(), 4);
    QCOMPARE(sizes[0]["verdict"].toString(), QString("works"));
    QCOMPARE(sizes[1]["verdict"].toString(), QString("partly"));
    QVERIFY2(sizes[1]["why"].toString().contains("3"), qPrintable(sizes[1]["why"].toString()));
  }

  void preflightSpeaksBeforeTheSearch() {
    const QJsonObject answer = json({"plan", bundled("three-heads"), "--ranks", "2", "--preflight"});
    QCOMPARE(answer["schema"].toString(), QString("cleave.preflight/1"));
    QVERIFY(answer["operators_without_rule"].toArray().isEmpty());
    QVERIFY(answer["whole_bytes"].toInteger() > 0);
  }

  void badQuestionsExitTwo_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("no such value") << QStringList{"explain", model("llama"), "--value", "up_proj_9"} << "up_proj_9";
    QTest::newRow("no placement") << QStringList{"explain", model("llama"), "--value", "lm_head", "--placement", "sideways"} << "sideways";
    QTest::newRow("placement of nothing") << QStringList{"explain", model("llama"), "--placement", "R"} << "--value";
    QTest::newRow("no side") << QStringList{"plan", model("llama"), "--compare", "reference,fastest"} << "fastest";
    QTest::newRow("one side") << QStringList{"plan", model("llama"), "--compare", "reference"} << "two";
    QTest::newRow("no sizes") << QStringList{"plan", model("llama"), "--world-sizes", "4-2"} << "4-2";
    QTest::newRow("no device") << QStringList{"plan", model("llama"), "--device-profile", "abacus"} << "h100";
    QTest::newRow("no size") << QStringList{"plan", model("llama"), "--memory-budget", "lots"} << "lots";
    QTest::newRow("no optimizer") << QStringList{"plan", model("llama"), "--train", "--optimizer", "magic"} << "adamw";
    QTest::newRow("rule of nothing") << QStringList{"plan", model("llama"), "--rule-off", "aten::no_such_op"} << "aten::no_such_op";
    QTest::newRow("two questions") << QStringList{"plan", model("llama"), "--pareto", "--preflight"} << "--pareto";
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
