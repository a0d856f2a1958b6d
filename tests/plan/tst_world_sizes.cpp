// Verdicts on world sizes. Each depends only on its own world size, and names sizes that do not divide before costs.
#include "plan/build/world_sizes.h"
#include "tests/support/llama_graph.h"
#include "tests/support/rows.h"

#include <QTest>

using namespace cleave;
using namespace cleave::plan;
using solve::Engine;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

solve::Problem problemOf(const test::LlamaSizes& sizes) {
  solve::Problem problem;
  problem.graph = test::llamaGraph(sizes);
  problem.context = {.worldSize = 2, .candidateSet = rules::CandidateSet::Full};
  solve::DeviceProfile& profile = problem.cost.profile;
  profile.name = "round";
  profile.memoryBytes = kNoLimit / 4;
  profile.halfFlopsPerSecond = 1e14;
  profile.floatFlopsPerSecond = profile.doubleFlopsPerSecond = 1e12;
  profile.memoryBytesPerSecond = 1e12;
  profile.linkBytesPerSecond = 1e11;
  profile.linkLatencySeconds = 1e-6;
  return problem;
}

test::LlamaSizes published(std::int64_t heads, std::int64_t kvHeads, std::int64_t headSize, std::int64_t intermediate,
                           std::int64_t vocab) {
  return {.layers = 2,
          .hidden = heads * headSize,
          .heads = heads,
          .kvHeads = kvHeads,
          .intermediate = intermediate,
          .vocab = vocab,
          .sequence = 2048};
}

/// A model whose work takes less time than the latency of one collective.
test::LlamaSizes tiny(std::int64_t heads) {
  return {.layers = 1, .hidden = heads * 8, .heads = heads, .kvHeads = heads, .intermediate = 112, .vocab = 256};
}

WorldSize on(const solve::Problem& problem, int ranks, Engine engine = Engine::Optimal) {
  return worldSizes(problem, engine, std::vector<int>{ranks}).front();
}

bool isSame(const WorldSize& a, const WorldSize& b) {
  return a.ranks == b.ranks && a.verdict == b.verdict && a.heads == b.heads && a.why == b.why && a.layers == b.layers;
}

}  // namespace

class TestWorldSizes : public QObject {
  Q_OBJECT
 private slots:
  void aVerdictDependsOnlyOnItsWorldSize_data() {
    const test::Rows<int, int, int, int> row("heads", "kvHeads", "intermediate", "indivisible");
    row("52 heads", 52, 52, 17920, 8);
    row("28 heads", 28, 4, 18944, 8);
    row("71 heads", 71, 71, 18176, 4);
  }
  void aVerdictDependsOnlyOnItsWorldSize() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, intermediate);
    QFETCH(int, indivisible);
    const solve::Problem problem = problemOf(published(heads, kvHeads, 64, intermediate, 32000));
    const std::vector<int> asked{1, 2, 4, indivisible, 3};
    const auto together = worldSizes(problem, Engine::Optimal, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const WorldSize alone = on(problem, asked[i]);
      QVERIFY2(isSame(alone, together[i]), (toText(alone) + " but " + toText(together[i])).c_str());
    }
    const WorldSize alone = on(problem, indivisible);
    const std::string refusal = fmt::format("{} heads do not divide by {} ranks", heads, indivisible);
    QVERIFY2(alone.verdict == WorldSizeVerdict::Partly, toText(alone).c_str());
    QCOMPARE(alone.heads, refusal);
    const std::string text = toText(alone);
    QVERIFY2(text.find("attention") != std::string::npos && text.find(refusal) < text.find("attention"), text.c_str());
  }

  /// Some layers are split, but the plan is not faster than one rank.
  void aPlanThatIsNotFasterThanOneRankDoesNotPay() {
    solve::Problem problem = problemOf(published(14, 2, 64, 4864, 32000));
    problem.cost.profile.linkLatencySeconds = 0.1;
    problem.cost.slackPercent = 50;
    const WorldSize size = on(problem, 2);
    QVERIFY2(size.layers.split > 0, toText(size).c_str());
    QVERIFY2(size.verdict == WorldSizeVerdict::DoesNotPay, toText(size).c_str());
    QVERIFY2(size.why.find("one rank") != std::string::npos, size.why.c_str());
    const auto whole = on(problem, 1);
    QVERIFY(size.femtoseconds >= whole.femtoseconds);
    // If the model does not fit one rank, a split plan works.
    problem.cost.memoryBudget = whole.rankBytes - 1;
    const WorldSize bound = on(problem, 2);
    QVERIFY2(bound.verdict == WorldSizeVerdict::Works, toText(bound).c_str());
  }

  void namesIndivisibleHeadsBeforeCosts() {
    const WorldSize size = on(problemOf(tiny(8)), 3);
    QVERIFY2(size.verdict == WorldSizeVerdict::DoesNotPay, toText(size).c_str());
    QCOMPARE(size.heads, std::string("8 heads do not divide by 3 ranks"));
    const std::string text = toText(size);
    const auto reason = text.find("is replicated: ");
    QVERIFY2(reason != std::string::npos && text.find(size.heads) < reason, text.c_str());
    QCOMPARE(on(problemOf(tiny(8)), 4).heads, std::string());
  }

  /// A world size that does not divide the model replicates it, so it needs more memory than a smaller one.
  void namesIndivisibleHeadsBeforeTheBudget() {
    solve::Problem problem = problemOf(published(128, 8, 16, 16384, 1024));
    problem.cost.memoryBudget = on(problem, 4).rankBytes * 5 / 4;
    QVERIFY(on(problem, 4).hasPlan);
    const WorldSize size = on(problem, 7);
    QVERIFY2(size.verdict == WorldSizeVerdict::OverBudget, toText(size).c_str());
    QCOMPARE(size.heads, std::string("128 heads do not divide by 7 ranks"));
    QVERIFY2(size.why.find("of weights are replicated") != std::string::npos, size.why.c_str());
    QVERIFY2(size.why.find("16384 output features do not divide by 7 ranks") != std::string::npos, size.why.c_str());
  }

  /// 28 heads do not divide by 8 ranks, but the weights are split, so only the budget is the reason.
  void headsAreNotTheReasonIfWeightsAreSplit() {
    solve::Problem problem = problemOf(published(28, 4, 16, 4096, 1024));
    problem.cost.memoryBudget = on(problem, 8).rankBytes / 2;
    const WorldSize size = on(problem, 8);
    QVERIFY2(size.verdict == WorldSizeVerdict::OverBudget && size.heads.empty(), reasonText(size).c_str());
    QVERIFY2(size.why.starts_with("Every plan needs more than the budget"), size.why.c_str());
  }

  void contradictoryPinsAreTheReason() {
    solve::Problem problem = problemOf(published(28, 4, 16, 4096, 1024));
    for (const char* pin : {"model.layers.0.self_attn.q_proj=row", "model.layers.0.self_attn.q_proj=column"})
      problem.pins.push_back(*solve::Pin::parse(pin));
    const WorldSize size = on(problem, 8);
    QVERIFY2(size.verdict == WorldSizeVerdict::NoSolution && size.heads.empty(), reasonText(size).c_str());
    QVERIFY2(size.why.find("is pinned to row and pinned to column, but no strategy satisfies both: it can be column") !=
                 std::string::npos,
             size.why.c_str());
  }

  /// An engine that ignores the budget returns a plan, but a plan over the budget does not work.
  void aPlanOverTheBudgetDoesNotWork_data() {
    QTest::addColumn<int>("ranks");
    for (const int ranks : {1, 2}) QTest::addRow("%d", ranks) << ranks;
  }
  void aPlanOverTheBudgetDoesNotWork() {
    QFETCH(int, ranks);
    solve::Problem problem = problemOf(tiny(8));
    for (const Engine engine : {Engine::Learning, Engine::Reference}) {
      problem.cost.memoryBudget = std::nullopt;
      const WorldSize roomy = on(problem, ranks, engine);
      QVERIFY2(roomy.hasPlan && roomy.fitsBudget() && roomy.verdict != WorldSizeVerdict::OverBudget,
               toText(roomy).c_str());
      problem.cost.memoryBudget = roomy.rankBytes;
      QCOMPARE(toText(on(problem, ranks, engine)), toText(roomy));
      problem.cost.memoryBudget = roomy.rankBytes - 1;
      const WorldSize size = on(problem, ranks, engine);
      QVERIFY2(size.hasPlan && size.verdict == WorldSizeVerdict::OverBudget, toText(size).c_str());
      QCOMPARE(size.overBytes, 1);
      QCOMPARE(size.rankBytes, roomy.rankBytes);
      QVERIFY2(toText(size).find("ignores the budget") != std::string::npos, toText(size).c_str());
    }
  }

  /// "Cannot be split" is only true if no setting allows a split.
  void aSplitInAnotherCandidateSetIsNotImpossible() {
    solve::Problem problem = problemOf(tiny(8));
    problem.context.candidateSet = rules::CandidateSet::Optimum;
    const WorldSize size = on(problem, 3, Engine::Reference);
    QCOMPARE(size.layers.split, std::size_t{0});
    QVERIFY2(size.verdict == WorldSizeVerdict::NotAskedFor, toText(size).c_str());
    QVERIFY2(toText(size).starts_with("nothing is split: 8 heads do not divide by 3 ranks; "), toText(size).c_str());
    QVERIFY2(size.why.find("with the full candidate set") != std::string::npos, size.why.c_str());
  }

  /// KV heads are not the reason if ranks can share them, which depends on the candidate set.
  void sharedKvHeadsAreNotAReason() {
    solve::Problem problem = problemOf(published(32, 2, 64, 4096, 32000));
    const WorldSize shared = on(problem, 4);
    QVERIFY2(shared.verdict == WorldSizeVerdict::Works && shared.heads.empty(), toText(shared).c_str());
    problem.context.candidateSet = rules::CandidateSet::Optimum;
    const WorldSize split = on(problem, 4);
    QVERIFY2(split.verdict == WorldSizeVerdict::Partly, toText(split).c_str());
    QCOMPARE(split.heads, std::string("2 KV heads do not divide by 4 ranks"));
    QVERIFY2(split.why.find("with the full candidate set") != std::string::npos, split.why.c_str());
  }
};

QTEST_APPLESS_MAIN(TestWorldSizes)
#include "tst_world_sizes.moc"
