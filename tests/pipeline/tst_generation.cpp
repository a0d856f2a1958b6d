// The plans of a prompt and of a decode step: both have the same split of the weights and of the cache.
#include "graph/states.h"
#include "pipeline/report/report.h"
#include "pipeline/run/generation.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "pipeline/source/planned_model.h"
#include "solve/checker.h"
#include "tests/support/need.h"

#include <fmt/ranges.h>

#include <QTest>
#include "plan/file/plan_file.h"
#include "tests/support/rows.h"

using namespace cleave;
using graph::CacheUse;
using test::need;

namespace {

const std::string kFamilies = CLEAVE_SOURCE_DIR "/tests/data/families/";
constexpr std::int64_t kLength = 7, kNew = 12;

struct Plans {
  std::shared_ptr<const plan::Plan> prompt, step;
};

Plans plansOf(const std::string& source, const spec::PlanSpec& options) {
  const auto model = need(pipeline::openModel(source, {.batch = 2,
                                                       .sequence = kLength,
                                                       .loss = false,
                                                       .logitsToKeep = 1,
                                                       .cacheUse = CacheUse::Fills,
                                                       .cachePositions = kLength + kNew}));
  spec::PlanSpec asked = options;
  asked.cost.profile = need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  const auto solved = need(pipeline::solveModel(model, asked));
  Plans plans;
  plans.prompt = need(pipeline::planModel(model, solved));
  plans.step = need(pipeline::planStep(*plans.prompt));
  return plans;
}

std::map<std::string, std::string> splitsOf(const plan::Plan& plan) {
  std::map<std::string, std::string> splits;
  for (const auto& parameter : plan.parameters) splits.emplace(parameter.name, parameter.placement.text());
  return splits;
}

}  // namespace

class TestGeneration : public QObject {
  Q_OBJECT
 private slots:
  void bothPlansSplitTheWeightsAlike_data() {
    const test::Rows<QString, int, int, QString> row("name", "ranks", "engine", "cache");
    using enum solve::Engine;
    row("heads divide", "llama-8-heads", 4, int(Reference), "S(1)");
    row("fewer heads than ranks", "llama", 4, int(Reference), "S(1,x2)");
    row("one head for keys", "llama-one-kv-head", 2, int(Learning), "");
    row("fused per head", "gpt_neox", 2, int(Reference), "S(1)");
    row("fused blocks", "gpt2", 2, int(Reference), "S(1)");
    row("latent attention", "deepseek_v3", 2, int(Reference), "S(1)");
    row("as fast as can be", "llama", 2, int(Optimal), "");
    row("one rank", "llama", 1, int(Reference), "R");
  }
  void bothPlansSplitTheWeightsAlike() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(int, engine);
    QFETCH(QString, cache);
    spec::PlanSpec options;
    options.ranks = ranks;
    options.engine = static_cast<solve::Engine>(engine);
    options.candidateSet = rules::CandidateSet::Full;
    const Plans plans = plansOf(kFamilies + name.toStdString(), options);
    QCOMPARE(splitsOf(*plans.step), splitsOf(*plans.prompt));
    const auto filled = graph::statesOf(*plans.prompt->graph), read = graph::statesOf(*plans.step->graph);
    QVERIFY(!filled.empty());
    QCOMPARE(filled.size(), read.size());
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
      QCOMPARE(read[i].name, filled[i].name);
      const auto& given = plans.step->solution->of(read[i].past);
      QCOMPARE(given.text(), plans.prompt->solution->of(filled[i].present).text());
      QCOMPARE(given.text(), plans.step->solution->of(read[i].present).text());
      if (!cache.isEmpty()) QCOMPARE(QString::fromStdString(given.text()), cache);
      bytes += graph::sizeInBytes({plans.step->graph->value(read[i].past).type.dtype,
                                   *given.localShape(plans.step->graph->shapeOf(read[i].past), ranks)});
    }
    QCOMPARE(plans.step->cost.sum.kvCache, bytes);
    QCOMPARE(plans.prompt->cost.sum.kvCache * (kLength + kNew), bytes * kLength);
    for (const auto& plan : {plans.prompt, plans.step}) {
      const auto check = need(pipeline::checkPlan(plan::toJson(*plan)));
      QVERIFY2(check.holds(), qPrintable(QString::fromStdString(fmt::format("{}", fmt::join(check.findings, " ")))));
    }
  }

  /// Each rank keeps its part of the cache. No plan gathers it, for the prompt or for a step.
  void theCacheIsNotGathered() {
    spec::PlanSpec options{.ranks = 2, .engine = solve::Engine::Reference};
    const Plans plans = plansOf(kFamilies + "llama-8-heads", options);
    for (const auto& plan : {plans.prompt, plans.step}) {
      for (const graph::State& state : graph::statesOf(*plan->program)) {
        const graph::Shape& local = plan->program->shapeOf(state.present);
        QCOMPARE(local[graph::kCacheHeads], 2);  // of 4
        QCOMPARE(local[graph::kCachePositions], plan == plans.prompt ? kLength : kLength + kNew);
      }
      const auto ofLogits = std::count_if(plan->collectives.begin(), plan->collectives.end(),
                                          [](const auto& c) { return c.kind == rules::CollectiveKind::AllGather; });
      QVERIFY(ofLogits <= 1);
    }
    for (const auto node : idRange<graph::NodeId>(plans.step->program->nodes.size())) {
      if (plans.step->program->opName(plans.step->program->node(node)) == "aten::index_put")
        QVERIFY(graph::writesInPlace(*plans.step->program, node));
    }
  }

  void theCheckerAcceptsAndRefuses() {
    spec::PlanSpec options{.ranks = 2, .engine = solve::Engine::Reference};
    const Plans plans = plansOf(kFamilies + "llama-8-heads", options);
    solve::Problem problem;
    problem.graph = plans.step->graph;
    problem.context = {2, plans.step->spec.candidates(), plans.step->spec.sequenceParallel};
    problem.cost = plans.step->spec.cost;
    solve::Solution solution = *plans.step->solution;
    QVERIFY(solve::check(problem, solution).empty());
    // Split by positions: a rank cannot read such a cache alone.
    const auto states = graph::statesOf(*plans.step->graph);
    solution.placements[states.front().past.index()] = rules::Placement::split(graph::kCachePositions);
    QVERIFY(!solve::check(problem, solution).empty());
  }

  void aPlanFileKeepsWhatItIsFor() {
    const Plans plans = plansOf(kFamilies + "gpt2", {.ranks = 2, .engine = solve::Engine::Reference});
    const auto read = need(plan::planFromJson(plan::toJson(*plans.step)));
    QCOMPARE(read.model.input.cacheUse, CacheUse::Reads);
    QCOMPARE(read.model.input.cachePositions, kLength + kNew);
    QVERIFY(!pipeline::modelDifference(read, *need(pipeline::openModelOf(read.model))));
  }

  void promptsAreRead() {
    const pipeline::TokenRows rows = need(pipeline::parsePrompt("1,2,3;4,5,6"));
    QCOMPARE(rows.rows, 2);
    QCOMPARE(rows.length, 3);
    QCOMPARE(rows.at(1, 2), 6);
    for (const char* wrong : {"", ",", "1,", "1;", "1,2;3", "1 2", "-1", "1,x", "1;;2", "99999999999999999999"})
      QVERIFY2(!pipeline::parsePrompt(wrong), wrong);
  }

  void aModelSaysWhenItEnds() {
    plan::ModelInfo model;
    model.source = kFamilies + "llama";
    const auto generation = need(pipeline::generationOf(model, 5));
    QCOMPARE(generation.tokens, 5);
    QCOMPARE(generation.endTokens, std::vector<std::int64_t>{2});
    QCOMPARE(generation.paddingToken, 0);
  }
};

QTEST_APPLESS_MAIN(TestGeneration)
#include "tst_generation.moc"
