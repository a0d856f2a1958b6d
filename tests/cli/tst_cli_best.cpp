// `best --count K`: the best plan and the next best ones.
#include "tests/support/cli_json.h"
#include "tests/support/rows.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSet>
#include <QTest>

using namespace cleave::test;

namespace {

/// The identity of a listed plan: its layers and redistributions that differ from the first plan's.
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
  /// The transient peak makes the budget binding: most plans within the budget exceed it with their peak.
  void beginsWithThePlanUnderABudgetThatThePeakBinds_data() {
    const Rows<QString> row("ranks");
    row("2 ranks", "2");
    row("4 ranks", "4");
  }
  void beginsWithThePlanUnderABudgetThatThePeakBinds() {
    QFETCH(QString, ranks);
    const QStringList asked{bundled("seven-layers"), "--memory-budget", "1400KiB", "--ranks", ranks};
    const QJsonObject cost = json(QStringList{"plan"} + asked)["cost"].toObject();
    const QJsonArray plans = json(QStringList{"best", "--count", "3"} + asked)["plans"].toArray();
    QCOMPARE(plans.size(), 3);
    QCOMPARE(plans[0]["step_fs"].toInteger(), cost["step_fs"].toInteger());
    QCOMPARE(plans[0]["rank_bytes"].toInteger(), cost["rank_bytes"].toInteger());
    QVERIFY(plans[0]["changes"].toArray().isEmpty());
    for (const QJsonValue& plan : plans) QVERIFY(plan["rank_bytes"].toInteger() <= 1400 * 1024);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void noTwoDifferOnlyInHowValuesArePlaced() {
    const QJsonArray plans = json({"best", model("llama"), "--count", "30"})["plans"].toArray();
    QCOMPARE(plans.size(), 30);
    QCOMPARE(distinct(plans).size(), plans.size());
    for (qsizetype i = 2; i < plans.size(); ++i)
      QVERIFY(plans[i]["step_fs"].toInteger() >= plans[i - 1]["step_fs"].toInteger());
  }

  void redistributionsMakePlansDistinct() {
    const QStringList base{"best", model("llama"), "--engine", "optimal", "--count", "30", "--slack", "0"};
    const QString value = "model.layers.1.mlp.down_proj";
    const QJsonArray plans = json(base + QStringList{"--redistribute", value})["plans"].toArray();
    QCOMPARE(plans.size(), 30);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void saysWhenThereAreNoMore() {
    const QStringList base{"best", model("llama"), "--ranks", "1", "--count", "5"};
    const QJsonObject answer = json(base);
    QCOMPARE(answer["plans"].toArray().size(), 1);
    QVERIFY(answer["proved"].toBool());
    const Finished done = cli(base);
    QVERIFY2(done.out.contains("No more plans exist within the budget of 80 GiB: the others differ from this one only "
                               "in the placement of values."),
             done.out.constData());
  }

  void aThousandAreListed() {
    const Finished done = cli({"best", bundled("tiny-llama"), "--count", "1000", "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.err.contains("list plans"), done.err.constData());
    const QJsonArray plans = QJsonDocument::fromJson(done.out)["plans"].toArray();
    QCOMPARE(plans.size(), 1000);
    QCOMPARE(distinct(plans).size(), plans.size());
  }

  void moreThanAThousandAreRefused() {
    const Finished done = cli({"best", bundled("tiny-llama"), "--count", "1001"});
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains("--count") && done.err.contains("1000"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliBest)
#include "tst_cli_best.moc"
