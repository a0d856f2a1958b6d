// Texts about plans. Copies on every rank count as replicated, and each sentence names only modules that it applies to.
#include "plan/build/diff.h"
#include "plan/build/plan_request.h"
#include "plan/replication_reason.h"
#include "plan/text/choice_text.h"
#include "plan/text/headline.h"
#include "plan/text/heads_text.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"
#include "solve/checker.h"
#include "tests/plan/verdict_fixture.h"
#include "tests/support/llama_graph.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"

using namespace cleave;
using namespace cleave::plan;
using solve::Engine;
using testing::solved;

namespace {

solve::Problem problemOf(const test::LlamaSizes& sizes, int ranks) {
  solve::Problem problem;
  problem.graph = test::llamaGraph(sizes);
  problem.context = {.worldSize = ranks, .candidateSet = rules::CandidateSet::Full};
  problem.cost.profile.linkLatencySeconds = 1e-9;
  problem.cost.profile.floatFlopsPerSecond = 1e10;
  return problem;
}

test::LlamaSizes withHeads(std::int64_t heads, std::int64_t kvHeads) {
  return {.layers = 2, .hidden = heads * 8, .heads = heads, .kvHeads = kvHeads, .intermediate = 112, .vocab = 256};
}

Plan planOf(const solve::Problem& problem, Engine engine) {
  const auto result = solved(problem, engine);
  if (!result) qFatal("no plan");
  PlanRequest request;
  request.problem = std::make_shared<const solve::Problem>(problem);
  request.solution = std::make_shared<const solve::Solution>(*result->solution);
  request.engine = engine;
  request.optimum = result->optimum;
  return testing::planned(request);
}

bool isWholeOnAll(const Plan& plan, const LayerPlan& layer) {
  const auto at = std::find_if(plan.parameters.begin(), plan.parameters.end(),
                               [&](const ParameterShards& p) { return p.name == layer.weight; });
  return at != plan.parameters.end() && at->localShape == at->type.shape;
}

}  // namespace

class TestSentences : public QObject {
  Q_OBJECT

 private slots:
  void anUnprovedPlanIsNotTheBestOfAllPlans_data() {
    const test::Rows<double> row("slackPercent");
    row("without slack", 0.0);
    row("with slack", 1.0);
  }
  void anUnprovedPlanIsNotTheBestOfAllPlans() {
    QFETCH(double, slackPercent);
    Plan plan;
    plan.fastest.emplace();
    plan.spec.cost.slackPercent = slackPercent;
    plan.lowerBoundFs = Femtoseconds(1);
    const auto says = [&](const char* words) { return choiceInWords(plan).find(words) != std::string::npos; };
    QVERIFY2(says("the fastest of the plans found") && says("Not proved"), choiceInWords(plan).c_str());
    plan.fastest->femtoseconds = plan.cost.sum.computeFs = Femtoseconds(1000);
    plan.lowerBoundFs = Femtoseconds(900);
    QCOMPARE(proofInWords(plan), std::string("within 12 % of the lower bound"));  // 11.1 %
    plan.lowerBoundFs = Femtoseconds(8);
    QCOMPARE(proofInWords(plan), std::string("within 13000 % of the lower bound"));
    plan.lowerBoundFs = Femtoseconds(998);
    QCOMPARE(proofInWords(plan), std::string("within 0.21 % of the lower bound"));
    plan.cost.sum.computeFs = Femtoseconds(1100);  // slower than the fastest plan found, within the slack
    QCOMPARE(proofInWords(plan), std::string("within 11 % of the lower bound"));
    plan.cost.sum.computeFs = Femtoseconds(1'000'000'000'000'001);
    plan.lowerBoundFs = Femtoseconds(1'000'000'000'000'000);
    QCOMPARE(proofInWords(plan), std::string("within 0.01 % of the lower bound"));
    plan.cost.sum.computeFs = plan.fastest->femtoseconds;
    plan.lowerBoundFs.reset();
    QVERIFY(proofInWords(plan) == "not proved");
    plan.isProvedOptimal = true;
    QVERIFY(proofInWords(plan) == "proved");
    QVERIFY2(says("the fastest of all plans") && !says("Not proved"), choiceInWords(plan).c_str());
  }

  /// A plan that splits a layer may be faster than the one within the budget, as fast, or slower.
  void reportsTheFastestPlanThatSplitsALayer() {
    for (const bool isProved : {true, false}) {
      for (const bool isOverBudget : {true, false}) {
        DoesNotPay costs{.isFastEnough = true, .isOverBudget = isOverBudget, .isProved = isProved};
        const auto textAt = [&](std::int64_t femtoseconds) {
          costs.extraFs = Femtoseconds(femtoseconds);
          return toText(ReplicationReason(costs));
        };
        const auto isIn = [](const std::string& text, const std::string& verb) {
          return text.find(verb + " 29.8 µs per step") != std::string::npos;
        };
        const std::string faster = textAt(-29'800'000'000), slower = textAt(29'800'000'000);
        QVERIFY2(isIn(faster, "saves") || isIn(faster, "saves at most"), faster.c_str());
        QVERIFY2(isIn(slower, "costs") || isIn(slower, "costs at least"), slower.c_str());
        for (const std::int64_t time : {-1, 0, 1})
          QVERIFY2(textAt(time).find("as little as") == std::string::npos, textAt(time).c_str());
      }
    }
  }

  void oneLayerIsSingular() {
    Plan plan;
    plan.spec.ranks = 2;
    plan.shares.ranks = 2;
    plan.shares.layers = {.split = 1, .layers = 1};
    QVERIFY(toText(plan.shares).ends_with(" 1 of 1 layer with weights is split."));
    plan.shares.layers = {.split = 1, .layers = 2};
    QVERIFY(toText(plan.shares).ends_with(" 1 of 2 layers with weights is split."));
    plan.shares.layers = {.split = 0, .layers = 2};
    QVERIFY(toText(plan.shares).ends_with(" 0 of 2 layers with weights are split."));
    plan.shares.layers = {.split = 1, .layers = 3, .gathered = 1};
    QVERIFY(toText(plan.shares).ends_with(" 1 of 3 layers with weights is split, 1 is gathered after the product."));
    QCOMPARE(headsText({.query = 1, .keyValue = 1}, 2), std::string("1 head does not divide by 2 ranks"));
    plan.spec.sequenceParallel = rules::SequenceParallel::On;
    plan.model.sequence = 1;
    QVERIFY(idleSequenceText(plan).ends_with("1 position does not divide by 2 ranks"));
  }

  /// A column layer with a copy of its weight on every rank is reported as replicated.
  void copiesOnEveryRankAreReplicated_data() {
    QTest::addColumn<int>("heads");
    QTest::addColumn<int>("kvHeads");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("hasCopies");  // some layer of some engine's plan
    QTest::newRow("7 heads on 2 ranks") << 7 << 7 << 2 << false;
    QTest::newRow("one KV head on 8 ranks") << 8 << 1 << 8 << true;
    QTest::newRow("2 KV heads on 4 ranks") << 8 << 2 << 4 << false;
  }
  void copiesOnEveryRankAreReplicated() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    QFETCH(bool, hasCopies);
    int copies = 0, met = 0;
    test::Sample sample;
    for (const Engine engine : {Engine::Optimal, Engine::Learning, Engine::Reference}) {
      const solve::Problem problem = problemOf(withHeads(heads, kvHeads), ranks);
      const Plan plan = planOf(problem, engine);
      for (const LayerPlan& layer : plan.layers) {
        if (layer.weight.empty() || !isWholeOnAll(plan, layer)) continue;
        ++copies;
        QCOMPARE(layer.axis, std::string("replicated"));
      }
      // With a pin to column, or a pin that forbids copies, a plan splits the layer, or no plan exists.
      for (const char* pin : {"*.q_proj=column", "*.k_proj=column", "*.q_proj!=replicated"}) {
        if (!sample.takesNext()) continue;
        solve::Problem pinned = problem;
        pinned.pins.push_back(*solve::Pin::parse(pin));
        const auto result = solved(pinned, engine);
        if (!result) continue;
        const auto violations = solve::check(pinned, *result->solution);
        QVERIFY2(violations.empty(), violations.empty() ? "" : violations.front().c_str());
        ++met;
        const Plan split = planOf(pinned, engine);
        const std::string name = fmt::format("model.layers.0.self_attn.{}_proj", pin[2]);
        QVERIFY2(!isWholeOnAll(split, testing::layerNamed(split, name)), pin);
      }
    }
    QCOMPARE(copies > 0, hasCopies);
    QVERIFY(!sample.isFull() || met > 0);
  }

  /// A layer that becomes split is listed. A layer that is replicated in both plans is not.
  void differencesIgnoreCopiesOnAllRanks_data() {
    const test::Rows<int, int, int> row("kvHeads", "ranks", "otherRanks");
    row("2 KV heads", 2, 7, 14);
    row("7 KV heads", 7, 2, 7);
    row("one KV head", 1, 2, 14);
  }
  void differencesIgnoreCopiesOnAllRanks() {
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    QFETCH(int, otherRanks);
    const test::LlamaSizes sizes = withHeads(14, kvHeads);
    const Plan a = planOf(problemOf(sizes, ranks), Engine::Learning),
               b = planOf(problemOf(sizes, otherRanks), Engine::Learning);
    const auto difference = diff(a, b);
    QVERIFY2(difference.has_value(), difference ? "" : difference.error().message.c_str());
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
      if (a.layers[i].weight.empty()) continue;
      const bool was = isWholeOnAll(a, a.layers[i]), is = isWholeOnAll(b, b.layers[i]);
      const bool isListed = std::any_of(difference->layers.begin(), difference->layers.end(),
                                        [&](const LayerChange& c) { return c.node == a.layers[i].node; });
      if (was != is) QVERIFY2(isListed, a.layers[i].name.c_str());
      if (was && is) QVERIFY2(!isListed, a.layers[i].name.c_str());
    }
    for (const ValueChange& value : difference->values) {
      QVERIFY2(!(value.before.isReplicatedOn(ranks) && value.after.isReplicatedOn(otherRanks)), value.name.c_str());
    }
  }

  void aWarningCountsItsModules() {
    solve::Problem problem = problemOf(withHeads(8, 8), 2);
    problem.pins.push_back(*solve::Pin::parse("model.layers.0.self_attn.q_proj=replicated"));
    problem.pins.push_back(*solve::Pin::parse("model.layers.1.self_attn.o_proj=row"));
    const Plan plan = planOf(problem, Engine::Learning);
    bool isWarned = false;
    for (const std::string& warning : plan.warnings) {
      QVERIFY2(!warning.empty() && !(warning.front() >= 'a' && warning.front() <= 'l'), warning.c_str());
      if (warning.find("self_attn") == std::string::npos || warning.find("computes") == std::string::npos) continue;
      isWarned = true;
      QVERIFY2(warning.find("(1 of 2)") != std::string::npos, warning.c_str());
    }
    QVERIFY(isWarned);
  }

  void aFasterSplitIsNotReportedAsACost() {
    const std::string text = toText(ReplicationReason(DoesNotPay{Femtoseconds(-47'300'000'000), 0, true}));
    QVERIFY2(text.find("costs") == std::string::npos, text.c_str());
    QVERIFY2(text.find("saves at most 47.3 µs per step and no memory") != std::string::npos, text.c_str());
  }

  /// The heads are the reason why a projection is replicated, not the placement of another projection.
  void headsAreTheReasonOfProjections() {
    test::LlamaSizes sizes = withHeads(40, 8);
    sizes.intermediate = 113;
    const Plan plan = planOf(problemOf(sizes, 7), Engine::Optimal);
    for (const char* name : {"model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.o_proj"}) {
      const auto* cannot = std::get_if<Cannot>(&testing::layerNamed(plan, name).replication);
      QVERIFY2(cannot, toText(testing::layerNamed(plan, name).replication).c_str());
      QCOMPARE(cannot->why, std::string("40 heads do not divide by 7 ranks"));
    }
    const auto* mlp = std::get_if<Cannot>(&testing::layerNamed(plan, "model.layers.0.mlp.up_proj").replication);
    QVERIFY(mlp && mlp->why.find("113 output features") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestSentences)
#include "tst_sentences.moc"
