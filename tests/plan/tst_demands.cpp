/// Plans under redistributions and switched-off rules: what the rank program does, and that a file carries them.
#include "plan/demands.h"
#include "solve/checker.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

std::string programText(const Plan& plan) {
  std::string text = graph::toText(*plan.program);
  for (auto at = text.find(" #"); at != std::string::npos; at = text.find(" #", at))
    text.erase(at, text.find('\n', at) - at);
  while (text.starts_with("scope ")) text.erase(0, text.find('\n') + 1);
  return text;
}

/// Through a file: the same program, solution and bytes.
void comesBack(const Plan& plan) {
  const std::string text = toJson(plan);
  const auto again = planFromJson(text);
  QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
  QCOMPARE(programText(*again), programText(plan));
  QCOMPARE(again->solution->computedAs, plan.solution->computedAs);
  QVERIFY(again->solution->placements == plan.solution->placements);
  QCOMPARE(again->demands, plan.demands);
  QVERIFY(again->cost == plan.cost);
  QCOMPARE(toJson(*again), text);
  // What was read answers the problem that it names.
  solve::Problem problem{again->graph, {again->ranks, again->menu, again->sequenceParallel}, {}};
  QVERIFY(addDemands(again->demands, problem).has_value());
  QCOMPARE(demandsOf(problem), again->demands);
  QVERIFY(solve::check(problem, *again->solution).empty());
}

}  // namespace

class TestDemands : public QObject {
  Q_OBJECT
 private slots:
  void gathersAValueThatMayChange() {
    const Plan plan = planned(solvedFor(kMlp, context(2), {{"up=column", "down=replicated"}, {}, {"relu_0"}}));
    QCOMPARE(programText(plan),
             std::string("x: f32[1,4,8] = input\n"
                         "up.weight: f32[8,8] = parameter @up\n"
                         "up.bias: f32[8] = parameter @up\n"
                         "linear_0: f32[1,4,8] = aten::linear(x, up.weight, up.bias) @up\n"
                         "relu_0.part: f32[1,4,8] = aten::relu(linear_0)\n"
                         "relu_0: f32[1,4,16] = cleave::all_gather(relu_0.part, 2)\n"
                         "down.weight: f32[8,16] = parameter @down\n"
                         "down.bias: f32[8] = parameter @down\n"
                         "linear_1: f32[1,4,8] = aten::linear(relu_0, down.weight, down.bias) @down\n"
                         "add_0: f32[1,4,8] = aten::add.Tensor(x, linear_1, 1)\n"
                         "return y=add_0\n"));
    QCOMPARE(plan.collectives.size(), std::size_t{1});
    QCOMPARE(plan.collectives[0].after, std::string("relu_0"));
    QCOMPARE(plan.collectives[0].bytes, std::int64_t{1 * 4 * 16 * 4});
    const auto held = plan.programValueOf[plan.graph->findValue("relu_0").index()];
    QCOMPARE(plan.program->value(held).name, std::string("relu_0"));
    comesBack(plan);
  }

  void cutsAValueThatMayChangeWithoutTraffic() {
    const Plan plan = planned(solvedFor(kMlp, context(2), {{"up=replicated", "down=row"}, {}, {"linear_0"}}));
    const std::string text = programText(plan);
    QVERIFY2(text.find("linear_0.whole: f32[1,4,16] = aten::linear(x, up.weight, up.bias) @up\n"
                       "linear_0: f32[1,4,8] = cleave::shard(linear_0.whole, 2) @up\n"
                       "relu_0: f32[1,4,8] = aten::relu(linear_0)\n") != std::string::npos,
             text.c_str());
    QCOMPARE(plan.collectives.size(), std::size_t{1});  // the row layer's own
    QCOMPARE(plan.collectives[0].kind, rules::CollectiveKind::AllReduce);
    comesBack(plan);
  }

  void gathersAnOutputOnce() {
    const Plan plan = planned(solvedFor(kDecoder, context(2), {{"head=column", "linear_4=R"}, {}, {"linear_4"}}));
    const std::string text = programText(plan);
    QVERIFY(plan.solution->computedAs.contains(plan.graph->findValue("linear_4")));
    const auto first = text.find("linear_4: f32[1,4,12] = cleave::all_gather(linear_4.part, 2) @head\n");
    QVERIFY2(first != std::string::npos, text.c_str());
    QCOMPARE(text.find("cleave::all_gather(linear_4", first + 30), std::string::npos);
    QVERIFY2(text.find("return logits=linear_4, ") != std::string::npos, text.c_str());
    comesBack(plan);
  }

  void oneRankRedistributesNothing() {
    const Plan plan = planned(solvedFor(kMlp, context(1), {{}, {}, {"*"}}));
    QVERIFY(plan.collectives.empty());
    comesBack(plan);
  }

  void aPlanWithoutTheRuleOfItsLayersComesBack_data() {
    QTest::addColumn<QString>("rule");
    QTest::addColumn<bool>("onSequence");
    for (const char* rule : {"aten::linear", "aten::embedding", "aten::cross_entropy_loss", "*"}) {
      QTest::addRow("%s", rule) << QString(rule) << false;
      QTest::addRow("%s, sequence parallel", rule) << QString(rule) << true;
    }
  }
  void aPlanWithoutTheRuleOfItsLayersComesBack() {
    QFETCH(QString, rule);
    QFETCH(bool, onSequence);
    const auto sequence = onSequence ? rules::SequenceParallel::Auto : rules::SequenceParallel::Off;
    const Plan plan =
        planned(solvedFor(kDecoder, context(2, sequence, rules::Menu::Full), {{}, {rule.toStdString()}, {}}));
    for (const LayerPlan& layer : plan.layers) {
      const std::string& op = plan.graph->opName(plan.graph->node(layer.node));
      if (solve::matches(rule.toStdString(), op)) QCOMPARE(layer.strategy, rules::Strategy::Whole);
    }
    comesBack(plan);
  }

  void refusesDemandsThatItCannotRead() {
    solve::Problem problem{parsed(kMlp), context(2), {}};
    QVERIFY(addDemands({"up=column", "rule off: aten::relu", "redistribute: relu_0"}, problem).has_value());
    QCOMPARE(problem.pins.size(), std::size_t{1});
    QCOMPARE(problem.rulesOff, std::vector<std::string>{"aten::relu"});
    QCOMPARE(problem.redistributable, std::vector<std::string>{"relu_0"});
    const auto refused = addDemands({"up is column"}, problem);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY(refused.error().message.find("plan.demands") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestDemands)
#include "tst_demands.moc"
