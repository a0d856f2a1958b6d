// The shares that plans report and the reasons for replicated parts, compared with hand computations on published
// shapes.
#include "plan/build/preflight.h"
#include "plan/build/world_sizes.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"
#include "tests/plan/verdict_fixture.h"
#include "tests/support/rows.h"

#include <QTest>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

Case published(std::int64_t heads, std::int64_t kvHeads, std::int64_t headSize, std::int64_t intermediate,
               std::int64_t vocab, int ranks) {
  test::LlamaSizes sizes;
  sizes.layers = 2;
  sizes.heads = heads;
  sizes.kvHeads = kvHeads;
  sizes.hidden = heads * headSize;
  sizes.intermediate = intermediate;
  sizes.vocab = vocab;
  sizes.sequence = 2048;
  Case c;
  c.problem.graph = test::llamaGraph(sizes);
  c.problem.context = {.worldSize = ranks, .candidateSet = rules::CandidateSet::Full};
  c.problem.cost.profile = device();
  c.problem.cost.profile.memoryBytes = kNoLimit / 4;
  return c;
}

}  // namespace

class TestVerdicts : public QObject {
  Q_OBJECT
 private slots:
  void namesIndivisibleHeadsFirst_data() {
    const test::Rows<int, int, int, int, int, int, bool> row("heads", "kvHeads", "headSize", "intermediate", "vocab",
                                                             "ranks", "divide");
    row("qwen2.5-7b on 4", 28, 4, 128, 18944, 152064, 4, true);
    row("qwen2.5-7b on 8", 28, 4, 128, 18944, 152064, 8, false);
    row("llama-2-13b on 8", 40, 40, 128, 13824, 32000, 8, true);
    row("llama-2-13b on 16", 40, 40, 128, 13824, 32000, 16, false);
    row("52 heads on 4", 52, 52, 128, 17920, 32000, 4, true);
    row("52 heads on 8", 52, 52, 128, 17920, 32000, 8, false);
    row("24 heads on 8", 24, 8, 128, 8192, 128256, 8, true);
    row("24 heads on 6", 24, 24, 128, 9216, 128256, 6, true);
    row("24 heads on 16", 24, 8, 128, 8192, 128256, 16, false);
  }
  void namesIndivisibleHeadsFirst() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, headSize);
    QFETCH(int, intermediate);
    QFETCH(int, vocab);
    QFETCH(int, ranks);
    QFETCH(bool, divide);
    const Case c = published(heads, kvHeads, headSize, intermediate, vocab, ranks);
    const auto result = solved(c.problem, c.engine);
    QVERIFY(result);
    const Plan plan = planOf(c, *result);
    const auto indivisible = indivisibleHeads(plan.shares);
    const std::string refusal = fmt::format("{} heads do not divide by {} ranks", heads, ranks);
    QCOMPARE(indivisible.empty(), divide);
    const auto before = preflight(c.problem);
    QCOMPARE(before.heads.empty(), divide);
    const auto sizes = worldSizes(c.problem, c.engine, std::vector<int>{2, ranks});
    QCOMPARE(sizes[1].verdict == WorldSizeVerdict::Partly, !divide);
    // FLOPs of attention's products: 4·s·s·h for each of 2 layers. Every rank computes all of them.
    const double tokens = 2048, hidden = heads * headSize, kv = kvHeads * headSize;
    const double attention = 2 * 4 * tokens * tokens * hidden;
    const double products =
        2 * tokens * (2 * (2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * intermediate) + hidden * vocab);
    const double shareOfRest = products / (products + attention);
    if (divide) {
      QVERIFY2(plan.shares.flopsShare() > 0.99, toText(plan.shares).c_str());
      for (const std::string& warning : plan.warnings)
        QVERIFY2(warning.find("heads do not divide") == std::string::npos, warning.c_str());
      return;
    }
    QVERIFY2(std::abs(plan.shares.flopsShare() - shareOfRest) < 0.01,
             fmt::format("{} but by hand {}", toText(plan.shares), shareOfRest).c_str());
    QVERIFY2(plan.warnings[0].starts_with(refusal), plan.warnings[0].c_str());
    QVERIFY2(before.heads[0].text.starts_with(refusal), before.heads[0].text.c_str());
    QCOMPARE(sizes[1].heads, refusal);
    QCOMPARE(indivisible[0]->pattern, std::string("model.layers.*.self_attn"));
    QCOMPARE(std::get<Cannot>(indivisible[0]->why).why, refusal);
    // The time for attention's products alone, at 1e12 FLOPs a second. The module has other work too.
    QVERIFY(double(indivisible[0]->femtoseconds) >= attention * 1e3);
    QVERIFY(double(indivisible[0]->flops) >= attention);
  }

  /// "Cannot be split", "does not pay" and "excluded by a pin" are three reasons.
  void distinguishesThreeReasons() {
    test::LlamaSizes sizes{.layers = 1, .hidden = 64, .heads = 8, .kvHeads = 8, .intermediate = 113, .vocab = 256};
    Case c;
    c.problem.graph = test::llamaGraph(sizes);
    c.problem.context = {.worldSize = 2, .candidateSet = rules::CandidateSet::Full};
    c.problem.cost.profile = device();
    c.problem.pins.push_back(*solve::Pin::parse("lm_head=replicated"));
    const Plan plan = planOf(c, *solved(c.problem, c.engine));
    QVERIFY2(std::holds_alternative<Cannot>(layerNamed(plan, "model.layers.0.mlp.up_proj").replication),
             toText(layerNamed(plan, "model.layers.0.mlp.up_proj").replication).c_str());
    QVERIFY2(
        layerNamed(plan, "model.layers.0.mlp.up_proj").reason.find("113 output features do not divide by 2 ranks") !=
            std::string::npos,
        layerNamed(plan, "model.layers.0.mlp.up_proj").reason.c_str());
    // The latency of one collective, 1 µs, is more than all work of this model.
    QVERIFY2(std::holds_alternative<DoesNotPay>(layerNamed(plan, "model.layers.0.self_attn.q_proj").replication),
             layerNamed(plan, "model.layers.0.self_attn.q_proj").reason.c_str());
    const auto* pinned = std::get_if<NotAskedFor>(&layerNamed(plan, "lm_head").replication);
    QVERIFY(pinned);
    QCOMPARE(pinned->changes, (std::vector<solve::Change>{{solve::ChangeKind::LiftPin, "lm_head=replicated"}}));
    QVERIFY2(plan.warnings[0].starts_with("No layer is split: on 2 ranks of round, "), plan.warnings[0].c_str());
  }

  /// No world size splits a layer, because splitting does not pay. It would be possible.
  void worldSizesReportSplitsThatDoNotPay() {
    Case c;
    c.problem.graph =
        test::llamaGraph({.layers = 1, .hidden = 64, .heads = 8, .kvHeads = 8, .intermediate = 112, .vocab = 256});
    c.problem.context = {.worldSize = 2, .candidateSet = rules::CandidateSet::Full};
    c.problem.cost.profile = device();
    const auto sizes = worldSizes(c.problem, Engine::Optimal, std::vector<int>{2, 4, 8});
    QCOMPARE(sizes.size(), std::size_t{3});
    for (const WorldSize& size : sizes) {
      QVERIFY2(size.verdict == WorldSizeVerdict::DoesNotPay, toText(size).c_str());
      QVERIFY2(size.why.find("splitting it costs at least ") != std::string::npos, size.why.c_str());
    }
  }

  void worldSizesNameTheBudget() {
    Case c;
    c.problem.graph = test::llamaGraph({.layers = 1});
    c.problem.context = {.worldSize = 2, .candidateSet = rules::CandidateSet::Full};
    c.problem.cost.profile = device();
    c.problem.cost.memoryBudget = 1000;
    const auto sizes = worldSizes(c.problem, Engine::Optimal, std::vector<int>{2});
    QVERIFY2(sizes[0].verdict == WorldSizeVerdict::OverBudget, toText(sizes[0]).c_str());
    QVERIFY2(sizes[0].why.find("1000 B") != std::string::npos, sizes[0].why.c_str());
    QVERIFY(!sizes[0].fitsBudget());
    QCOMPARE(sizes[0].overBytes, sizes[0].rankBytes - 1000);
    QVERIFY2(toText(sizes[0]).starts_with("no plan fits: over by "), toText(sizes[0]).c_str());
  }

  /// With as many copies as ranks, the placement is a split, but the weight is replicated.
  void copiesOnEveryRankCountAsReplicated() {
    Case c;
    c.problem.graph =
        test::llamaGraph({.layers = 1, .hidden = 64, .heads = 8, .kvHeads = 1, .intermediate = 112, .vocab = 256});
    c.problem.context = {.worldSize = 8, .candidateSet = rules::CandidateSet::Full};
    c.problem.cost.profile = device();
    c.engine = Engine::Learning;
    c.problem.pins.push_back(*solve::Pin::parse("*.o_proj=row"));
    const Plan plan = planOf(c, *solved(c.problem, c.engine));
    std::int64_t whole = 0;
    for (const ParameterShards& parameter : plan.parameters) {
      if (parameter.localShape == parameter.type.shape) whole += sizeInBytes(parameter.type);
    }
    QCOMPARE(plan.memory.replicatedParameters, whole);
    QVERIFY(!std::holds_alternative<Split>(layerNamed(plan, "model.layers.0.self_attn.k_proj").replication));
  }
};

QTEST_APPLESS_MAIN(TestVerdicts)
#include "tst_verdicts.moc"
