// `plan --best K`: the plan and the next best ones.
#include "tests/support/cli_json.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSet>
#include <QTest>

using namespace cleave::test;

namespace {

/// What tells a listed plan apart: the layers and the redistributions that are not those of the first.
QByteArray changesOf(const QJsonValue& plan) {
  QJsonArray both{plan["changes"], plan["redistributions"]};
  return QJsonDocument(both).toJson();
}

QSet<QByteArray> distinct(const QJsonArray& plans) {
  QSet<QByteArray> changes;
  for (const QJsonValue& plan : plans) changes.insert(changesOf(plan));
  return changes;
}

}  // namespace

class TestCliBest : public QObject {
  Q_OBJECT
 private slots:
  /// The transient peak makes the budget binding: most plans that keep it without the peak do not keep it.
  void beginsWithThePlanUnderABudgetThatThePeakBinds_data() {
    QTest::addColumn<QString>("ranks");
    QTest::newRow("2 ranks") << "2";
    QTest::newRow("4 ranks") << "4";
  }
  void beginsWithThePlanUnderABudgetThatThePeakBinds() {
    QFETCH(QString, ranks);
    const QStringList base{"plan", bundled("seven-layers"), "--memory-budget", "1400KiB", "--ranks", ranks};
    const QJsonObject cost = json(base)["cost"].toObject();
    const QJsonArray plans = json(base + QStringList{"--best", "3"})["plans"].toArray();
    QCOMPARE(plans.size(), 3);
    QCOMPARE(plans[0]["step_fs"].toInteger(), cost["step_fs"].toInteger());
    QCOMPARE(plans[0]["rank_bytes"].toInteger(), cost["rank_bytes"].toInteger());
    QVERIFY(plans[0]["changes"].toArray().isEmpty());
    for (const QJsonValue& plan : plans) QVERIFY(plan["rank_bytes"].toInteger() <= 1400 * 1024);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void noTwoDifferOnlyInHowValuesArePlaced() {
    const QJsonArray plans = json({"plan", model("llama"), "--best", "30"})["plans"].toArray();
    QCOMPARE(plans.size(), 30);
    QCOMPARE(distinct(plans).size(), plans.size());
    for (qsizetype i = 2; i < plans.size(); ++i)
      QVERIFY(plans[i]["step_fs"].toInteger() >= plans[i - 1]["step_fs"].toInteger());
  }

  void whatIsRedistributedTellsPlansApart() {
    const QStringList base{"plan", model("llama"), "--engine", "optimal", "--best", "30", "--slack", "0"};
    const QString value = "model.layers.1.mlp.down_proj";
    const QJsonArray plans = json(base + QStringList{"--redistribute", value})["plans"].toArray();
    QCOMPARE(plans.size(), 30);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void saysWhenThereAreNoMore() {
    const QStringList base{"plan", model("llama"), "--ranks", "1", "--best", "5"};
    const QJsonObject answer = json(base);
    QCOMPARE(answer["plans"].toArray().size(), 1);
    QVERIFY(answer["proved"].toBool());
    const Finished said = cli(base);
    QVERIFY2(
        said.out.contains("There are no more: any other plan within the budget of 80 GiB differs from this one only "
                          "in how values are placed, not in a layer's strategy."),
        said.out.constData());
  }

  void aThousandAreListed() {
    const Finished done = cli({"plan", bundled("tiny-llama"), "--best", "1000", "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.err.contains("list plans"), done.err.constData());
    const QJsonArray plans = QJsonDocument::fromJson(done.out)["plans"].toArray();
    QCOMPARE(plans.size(), 1000);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void moreThanAThousandAreRefused() {
    const Finished done = cli({"plan", bundled("tiny-llama"), "--best", "1001"});
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains("--best") && done.err.contains("1000"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliBest)
#include "tst_cli_best.moc"
