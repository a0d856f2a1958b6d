/// Two plans side by side, and costs of plans against the collectives their programs perform.
#include "plan/diff.h"
#include "plan/plan_fixture.h"
#include "support/llama_graph.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

Plan llamaPlan(int ranks, const std::vector<std::string>& pins = {}, rules::Menu menu = rules::Menu::Optimum,
               rules::SequenceParallel sequence = rules::SequenceParallel::Off, test::LlamaSizes sizes = {}) {
  solve::Problem problem;
  problem.graph = test::llamaGraph(sizes);
  problem.context = {ranks, menu, sequence};
  for (const std::string& text : pins) problem.pins.push_back(*solve::Pin::parse(text));
  const auto sink = solve::makeCountingSink();
  auto result = solve::solve(problem, solve::Engine::Reference, *sink);
  if (!result || !result->solution) qFatal("no solution");
  PlanRequest request;
  request.solution = std::make_shared<const solve::Solution>(*result->solution);
  request.problem = std::make_shared<const solve::Problem>(std::move(problem));
  request.model.architecture = "LlamaForCausalLM";
  return planned(request);
}

std::int64_t collectiveBytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const CollectivePlan& collective : plan.collectives) bytes += collective.bytes;
  return bytes;
}

PlanDiff compared(const Plan& before, const Plan& after) {
  auto result = diff(before, after);
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

}  // namespace

class TestDiff : public QObject {
  Q_OBJECT
 private slots:
  void aPlanIsLikeItself() {
    const PlanDiff same = compared(llamaPlan(2), llamaPlan(2));
    QVERIFY(same.isSame());
    QCOMPARE(same.femtoseconds.change(), std::int64_t{0});
    QVERIFY(toText(same).find("No layer is treated otherwise.") != std::string::npos);
  }

  void otherPins() {
    const PlanDiff changed = compared(llamaPlan(2), llamaPlan(2, {"model.layers.*.mlp.*=whole"}));
    QVERIFY(!changed.isSame());
    QCOMPARE(changed.layers.size(), std::size_t{6});  // gate, up and down of two layers
    QCOMPARE(changed.splitLayers.change(), std::int64_t{-6});
    QVERIFY(changed.parameterBytes.change() > 0);
    QCOMPARE(changed.labelAfter, std::string("reference, 2 ranks, model.layers.*.mlp.*=whole"));
    const auto& [before, after] = changed.collectives.at(rules::CollectiveKind::AllReduce);
    QCOMPARE(after.count - before.count, std::int64_t{-2});
    QVERIFY(toText(changed).find("model.layers.*.mlp.up_proj: column becomes whole (2 layers)") != std::string::npos);
  }

  void otherRanks() {
    const PlanDiff changed = compared(llamaPlan(2), llamaPlan(4));
    QVERIFY(!changed.isSame());
    QCOMPARE(changed.ranksAfter, 4);
    QVERIFY(changed.rankBytes.change() < 0);
  }

  void otherMenu() {
    const PlanDiff changed = compared(llamaPlan(2), llamaPlan(2, {}, rules::Menu::Full, rules::SequenceParallel::On));
    QVERIFY(!changed.layers.empty());
    QVERIFY(!changed.values.empty());
    QVERIFY(toJson(changed).find("\"schema\":\"cleave.diff/1\"") != std::string::npos);
  }

  void refusesPlansOfDifferentGraphs() {
    test::LlamaSizes longer;
    longer.sequence = 32;
    const auto other = diff(llamaPlan(2), llamaPlan(2, {}, rules::Menu::Optimum, rules::SequenceParallel::Off, longer));
    QVERIFY(!other.has_value());
    QCOMPARE(other.error().code, ErrorCode::BadUsage);
    QVERIFY2(other.error().message.find("input_ids is i64[1,16] in the first and i64[1,32] in the second") != std::string::npos,
             other.error().message.c_str());
  }

  /// The cost model and the rank program count the same bytes.
  void predictedTrafficIsWhatTheProgramSends_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("menu");
    QTest::addColumn<int>("sequence");
    for (const int ranks : {1, 2, 4, 8}) {
      for (const auto menu : {rules::Menu::Optimum, rules::Menu::Full}) {
        for (const auto sequence : {rules::SequenceParallel::Off, rules::SequenceParallel::On, rules::SequenceParallel::Auto}) {
          QTest::addRow("%d ranks, menu %d, sequence %d", ranks, int(menu), int(sequence)) << ranks << int(menu) << int(sequence);
        }
      }
    }
  }
  void predictedTrafficIsWhatTheProgramSends() {
    QFETCH(int, ranks);
    QFETCH(int, menu);
    QFETCH(int, sequence);
    const Plan plan = llamaPlan(ranks, {}, static_cast<rules::Menu>(menu), static_cast<rules::SequenceParallel>(sequence));
    QCOMPARE(plan.cost.sum.trafficBytes, collectiveBytes(plan));
    QCOMPARE(plan.cost.sum.parameters, plan.memory.parameters);
    QCOMPARE(plan.cost.fixedBytes, plan.memory.inputs + plan.memory.constants);
  }

  /// Without a cache all live values are transient, as the rank program's liveness counts them.
  void transientPeakIsTheProgramsPeak() {
    const auto request = [] {
      PlanRequest made = requestFor(kDecoder, context(2), kDecoderSplit);
      solve::Problem problem = *made.problem;
      problem.cost.holdsKvCache = false;
      made.problem = std::make_shared<const solve::Problem>(problem);
      return made;
    }();
    const Plan plan = planned(request);
    QCOMPARE(plan.cost.transientPeak, plan.memory.peakActivations);
  }
};

QTEST_APPLESS_MAIN(TestDiff)
#include "tst_diff.moc"
