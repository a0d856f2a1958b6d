#include "graph/json.h"
#include "tests/support/plan_fixture.h"

#include <nlohmann/json.hpp>
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"
#include "tests/support/rows.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestPlanJson : public QObject {
  Q_OBJECT
 private slots:
  void roundTrips_data() {
    const test::Rows<int, bool> row("ranks", "onSequence");
    row("one rank", 1, false);
    row("two ranks", 2, false);
    row("two ranks, sequence parallel", 2, true);
  }
  void aPaddedVocabularyRoundTrips() {
    const PlanRequest request = requestFor(
        decoderWithVocabulary(13), context(2, rules::SequenceParallel::Off, rules::CandidateSet::Full), kDecoderSplit);
    const Plan plan = planned(request);
    const auto again = planFromJson(toJson(plan));
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toJson(*again), toJson(plan));
    QCOMPARE(again->parameters[4].name, std::string("embed.weight"));
    QCOMPARE(again->parameters[4].placement.text(), std::string("S(0,pad 1)"));
  }

  void roundTrips() {
    QFETCH(int, ranks);
    QFETCH(bool, onSequence);
    const auto mode = onSequence ? rules::SequenceParallel::On : rules::SequenceParallel::Off;
    PlanRequest request = requestFor(kDecoder, context(ranks, mode), onSequence ? kDecoderOnSequence : kDecoderSplit);
    request.captured = request.problem->graph;
    const Plan plan = planned(request);
    const std::string text = toJson(plan);
    const auto again = planFromJson(text);
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toJson(*again), text);
    const auto json = nlohmann::ordered_json::parse(text);
    QCOMPARE(json["program"].dump(), nlohmann::ordered_json::parse(graph::toJson(*plan.program)).dump());
    QCOMPARE(json["graph"].dump(), nlohmann::ordered_json::parse(graph::toJson(*plan.graph)).dump());
    QCOMPARE(again->programValueOf, plan.programValueOf);
    QCOMPARE(again->memory.peakActivations, plan.memory.peakActivations);
  }

  void aBudgetRoundTrips_data() {
    const test::Rows<std::optional<std::int64_t>> row("budget");
    row("none", std::optional<std::int64_t>());
    row("less than the device has", std::optional<std::int64_t>(1ll << 30));
    row("more than the device has", std::optional<std::int64_t>(1ll << 50));
  }
  void aBudgetRoundTrips() {
    QFETCH(std::optional<std::int64_t>, budget);
    Plan plan = planned(requestFor(kDecoder, context(2), kDecoderSplit));
    plan.spec.cost.memoryBudget = budget;
    const auto again = planFromJson(toJson(plan));
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QVERIFY(again->spec.cost == plan.spec.cost);
  }
};

QTEST_APPLESS_MAIN(TestPlanJson)
#include "tst_plan_json.moc"
