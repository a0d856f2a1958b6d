/// Compares two plans, and the predicted costs of plans with the collectives of their rank programs.
#include "base/quantities.h"
#include "plan/build/diff.h"
#include "plan/build/plan_request.h"
#include "plan/build/world_sizes.h"
#include "solve/explain/change.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/rows.h"

#include <QJsonDocument>
#include <QJsonObject>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

solve::Problem llamaProblem(int ranks, const std::vector<std::string>& pins, rules::CandidateSet candidateSet,
                            rules::SequenceParallel sequence, test::LlamaSizes sizes, const solve::CostSettings& cost) {
  solve::Problem problem;
  problem.graph = test::llamaGraph(sizes);
  problem.context = {ranks, candidateSet, sequence};
  problem.cost = cost;
  for (const std::string& text : pins) problem.pins.push_back(*solve::Pin::parse(text));
  return problem;
}

Plan llamaPlan(int ranks, const std::vector<std::string>& pins = {},
               rules::CandidateSet candidateSet = rules::CandidateSet::Optimum,
               rules::SequenceParallel sequence = rules::SequenceParallel::Off, test::LlamaSizes sizes = {},
               const solve::CostSettings& cost = {}) {
  solve::Problem problem = llamaProblem(ranks, pins, candidateSet, sequence, sizes, cost);
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
  void aPlanEqualsItself() {
    const PlanDiff same = compared(llamaPlan(2), llamaPlan(2));
    QVERIFY(same.isSame());
    QVERIFY(same.femtoseconds.change() == 0);
    QVERIFY(toText(same).find("All strategies and placements are equal.") != std::string::npos);
  }

  /// Placements can differ while strategies are equal, and the reverse.
  void countsDifferentPlacements() {
    PlanDiff diff = compared(llamaPlan(2), llamaPlan(2));
    const auto ends = [&](std::string_view end) { return toText(diff).ends_with(end); };
    diff.values.resize(1);
    QVERIFY2(ends("\nAll strategies are equal. 1 placement differs.\n"), toText(diff).c_str());
    diff.values.resize(2);
    QVERIFY2(ends("\nAll strategies are equal. 2 placements differ.\n"), toText(diff).c_str());
    diff.layers.resize(1);
    diff.values.clear();
    QVERIFY2(ends("\nAll placements are equal.\n"), toText(diff).c_str());
  }

  void comparesPlansWithOtherPins() {
    const PlanDiff changed = compared(llamaPlan(2), llamaPlan(2, {"model.layers.*.mlp.*=whole"}));
    QVERIFY(!changed.isSame());
    QCOMPARE(changed.layers.size(), std::size_t{6});  // gate, up and down of two layers
    QCOMPARE(changed.splitLayers.change(), std::int64_t{-6});
    QVERIFY(changed.memoryParts[0].change() > 0);
    QCOMPARE(changed.labelAfter, std::string("reference, 2 ranks, model.layers.*.mlp.*=whole"));
    const auto& [before, after] = changed.collectives.at(rules::CollectiveKind::AllReduce);
    QCOMPARE(after.count - before.count, std::int64_t{-2});
    QVERIFY(toText(changed).find("model.layers.{0-1}.mlp.up_proj: column becomes replicated (2 layers)") !=
            std::string::npos);
  }

  void comparesPlansForOtherRanks() {
    const PlanDiff changed = compared(llamaPlan(2), llamaPlan(4));
    QVERIFY(!changed.isSame());
    QCOMPARE(changed.ranksAfter, 4);
    QVERIFY(changed.rankBytes.change() < 0);
  }

  void comparesPlansFromOtherCandidates() {
    const PlanDiff changed =
        compared(llamaPlan(2), llamaPlan(2, {}, rules::CandidateSet::Full, rules::SequenceParallel::On));
    QVERIFY(!changed.layers.empty());
    QVERIFY(!changed.values.empty());
    QVERIFY(toJson(changed).find("\"schema\":\"cleave.diff/1\"") != std::string::npos);
  }

  void refusesPlansOfDifferentGraphs() {
    test::LlamaSizes longer;
    longer.sequence = 32;
    const auto other =
        diff(llamaPlan(2), llamaPlan(2, {}, rules::CandidateSet::Optimum, rules::SequenceParallel::Off, longer));
    QVERIFY(!other.has_value());
    QCOMPARE(other.error().code, ErrorCode::BadUsage);
    QVERIFY2(other.error().message.find("input_ids is i64[1,16] in the first and i64[1,32] in the second") !=
                 std::string::npos,
             other.error().message.c_str());
  }

  /// The cost model and the rank program count the same bytes.
  void predictedTrafficIsWhatTheProgramSends_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("candidateSet");
    QTest::addColumn<int>("sequence");
    for (const int ranks : {1, 2, 4, 8}) {
      for (const auto candidateSet : {rules::CandidateSet::Optimum, rules::CandidateSet::Full}) {
        for (const auto sequence :
             {rules::SequenceParallel::Off, rules::SequenceParallel::On, rules::SequenceParallel::Auto}) {
          QTest::addRow("%d ranks, candidates %d, sequence %d", ranks, int(candidateSet), int(sequence))
              << ranks << int(candidateSet) << int(sequence);
        }
      }
    }
  }
  void predictedTrafficIsWhatTheProgramSends() {
    QFETCH(int, ranks);
    QFETCH(int, candidateSet);
    QFETCH(int, sequence);
    const Plan plan = llamaPlan(ranks, {}, static_cast<rules::CandidateSet>(candidateSet),
                                static_cast<rules::SequenceParallel>(sequence));
    QCOMPARE(plan.cost.sum.trafficBytes, collectiveBytes(plan));
    QCOMPARE(plan.cost.sum.parameters, plan.memory.parameters);
    QCOMPARE(plan.cost.fixedBytes, plan.memory.inputs + plan.memory.constants);
  }

  /// Without a cache all live values are transient, as the rank program's liveness counts them.
  void transientPeakIsTheProgramsPeak_data() { predictedTrafficIsWhatTheProgramSends_data(); }
  void transientPeakIsTheProgramsPeak() {
    QFETCH(int, ranks);
    QFETCH(int, candidateSet);
    QFETCH(int, sequence);
    solve::CostSettings cost;
    cost.holdsKvCache = false;
    const Plan plan = llamaPlan(ranks, {}, static_cast<rules::CandidateSet>(candidateSet),
                                static_cast<rules::SequenceParallel>(sequence), {}, cost);
    QCOMPARE(plan.cost.transientPeak, plan.memory.peakActivations);
  }

  void transientPeakOfADecoder() {
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

  /// All reports of a plan have the same memory figures.
  void memoryFiguresEqualTheCost_data() {
    const test::Rows<int, bool, bool, int, int> row("ranks", "isTraining", "isTied", "vocab", "sequence");
    for (const bool isTraining : {false, true}) {
      const QByteArray use = isTraining ? "training, " : "";
      row(use + "2 ranks", 2, isTraining, false, 256, 0);
      row(use + "on the sequence", 4, isTraining, false, 256, 1);
      row(use + "tied", 2, isTraining, true, 256, 0);
      row(use + "padded vocabulary", 4, isTraining, false, 254, 0);
      row(use + "tied and padded", 4, isTraining, true, 254, 1);
      row(use + "shared KV heads", 8, isTraining, false, 256, 0);
    }
  }
  void memoryFiguresEqualTheCost() {
    QFETCH(int, ranks);
    QFETCH(bool, isTraining);
    QFETCH(bool, isTied);
    QFETCH(int, vocab);
    QFETCH(int, sequence);
    test::LlamaSizes sizes;
    sizes.isTied = isTied;
    sizes.vocab = vocab;
    solve::CostSettings cost;
    cost.isTraining = isTraining;
    const Plan plan =
        llamaPlan(ranks, {}, rules::CandidateSet::Full, static_cast<rules::SequenceParallel>(sequence), sizes, cost);
    std::int64_t stored = 0;
    for (const ParameterShards& parameter : plan.parameters)
      stored += graph::sizeInBytes({parameter.type.dtype, parameter.localShape});
    QCOMPARE(plan.cost.sum.parameters, stored);
    QCOMPARE(plan.memory.parameters, stored);
    std::int64_t sum = 0;
    const QJsonObject json =
        QJsonDocument::fromJson(QByteArray::fromStdString(toJson(plan))).object()["cost"].toObject();
    const PlanDiff same = compared(plan, plan);
    const auto parts = solve::memoryParts(plan.cost);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sum += parts[i].bytes;
      QCOMPARE(
          json["memory"].toObject()[QString::fromUtf8(parts[i].key.data(), qsizetype(parts[i].key.size()))].toInteger(
              -1),
          parts[i].bytes);
      QCOMPARE(same.memoryParts[i].before, parts[i].bytes);
      QCOMPARE(same.memoryParts[i].after, parts[i].bytes);
    }
    const std::int64_t bytes = plan.cost.bytes();
    QCOMPARE(sum, bytes);
    QCOMPARE(json["rank_bytes"].toInteger(), bytes);
    QCOMPARE(same.rankBytes.before, bytes);
    QCOMPARE(solve::memoryText(plan.cost).rfind(bytesText(bytes) + ": ", 0), std::size_t{0});
    // The heat of all nodes sums to the total without inputs, constants and the peak.
    const solve::Problem problem =
        llamaProblem(ranks, {}, rules::CandidateSet::Full, static_cast<rules::SequenceParallel>(sequence), sizes, cost);
    const solve::Variables variables(problem);
    std::int64_t heat = 0;
    for (const solve::StepCost& step : solve::CostModel(problem, variables).byNode(*plan.solution))
      heat += step.bytes();
    QCOMPARE(heat + plan.cost.fixedBytes + plan.cost.transientPeak, bytes);
    QCOMPARE(solve::figuresOf(problem, &*plan.solution).rankBytes, bytes);
    const std::array<int, 1> asked{ranks};
    QCOMPARE(worldSizes(problem, solve::Engine::Reference, asked).front().rankBytes, bytes);
  }
};

QTEST_APPLESS_MAIN(TestDiff)
#include "tst_diff.moc"
