/// Plans with rules off round-trip through a file. Demands that cannot be read are refused.
#include "base/wildcard.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestDemands : public QObject {
  Q_OBJECT
 private slots:
  void aPlanWithTheRuleOfItsLayersOffRoundTrips_data() {
    QTest::addColumn<QString>("rule");
    QTest::addColumn<bool>("onSequence");
    for (const char* rule : {"aten::linear", "aten::embedding", "aten::cross_entropy_loss", "*"}) {
      QTest::addRow("%s", rule) << QString(rule) << false;
      QTest::addRow("%s, sequence parallel", rule) << QString(rule) << true;
    }
  }
  void aPlanWithTheRuleOfItsLayersOffRoundTrips() {
    QFETCH(QString, rule);
    QFETCH(bool, onSequence);
    const auto sequence = onSequence ? rules::SequenceParallel::Auto : rules::SequenceParallel::Off;
    const Plan plan =
        planned(solvedFor(kDecoder, context(2, sequence, rules::CandidateSet::Full), {{}, {rule.toStdString()}, {}}));
    int without = 0;
    for (const LayerPlan& layer : plan.layers) {
      if (!matchesWildcard(rule.toStdString(), plan.graph->opName(plan.graph->node(layer.node)))) continue;
      ++without;
      QCOMPARE(layer.strategy, rules::Strategy::Replicated);
    }
    QVERIFY(without > 0);
    QCOMPARE(lostInAFile(plan), std::string());
  }

  void refusesDemandsThatItCannotRead() {
    spec::PlanSpec asked;
    const std::vector<std::string> texts{"up=column", "rule off: aten::relu", "redistribute: relu_0"};
    QVERIFY(spec::addDemands(texts, asked).has_value());
    QCOMPARE(asked.pins.size(), std::size_t{1});
    QCOMPARE(asked.rulesOff, std::vector<std::string>{"aten::relu"});
    QCOMPARE(asked.redistributable, std::vector<std::string>{"relu_0"});
    QCOMPARE(spec::demandTexts(asked), texts);
    const auto refused = spec::addDemands({"up is column"}, asked);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY(refused.error().message.find("plan.demands") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestDemands)
#include "tst_demands.moc"
