#include "plan/build/preflight.h"
#include "plan/build/world_sizes.h"
#include "tests/support/llama_graph.h"
#include "tests/support/need.h"

#include <QTest>

#include <numeric>

using namespace cleave;
using namespace cleave::plan;

namespace {

solve::Problem problemOf(std::shared_ptr<const Graph> graph, int ranks,
                         rules::CandidateSet candidateSet = rules::CandidateSet::Full) {
  solve::Problem problem;
  problem.graph = std::move(graph);
  problem.context = {.worldSize = ranks, .candidateSet = candidateSet};
  return problem;
}

std::vector<int> upTo(int most) {
  std::vector<int> ranks(static_cast<std::size_t>(most));
  std::iota(ranks.begin(), ranks.end(), 1);
  return ranks;
}

const ReplicatedWeights* find(const std::vector<ReplicatedWeights>& groups, std::string_view pattern) {
  const auto at =
      std::find_if(groups.begin(), groups.end(), [&](const ReplicatedWeights& g) { return g.pattern == pattern; });
  return at == groups.end() ? nullptr : &*at;
}

}  // namespace

class TestPreflight : public QObject {
  Q_OBJECT
 private slots:
  void reportsOperatorsWithoutARule() {
    const auto found =
        preflight(problemOf(test::parsedGraph("x: f32[2,4,8] = input\n"
                                              "strange_0: f32[2,4,8] = aten::strange(x)\n"
                                              "a.weight: f32[8,8] = parameter @a\n"
                                              "linear_0: f32[2,4,8] = aten::linear(strange_0, a.weight, None) @a\n"
                                              "relu_0: f32[2,4,8] = aten::relu(linear_0)\n"
                                              "odd_0: f32[2,4,8] = aten::odd(relu_0)\n"
                                              "odd_1: f32[2,4,8] = aten::odd(odd_0)\n"
                                              "return y=odd_1\n"),
                            2));
    QCOMPARE(found.unknownOperators.size(), std::size_t{2});
    QCOMPARE(found.unknownOperators[0].op, std::string("aten::strange"));
    QVERIFY(!found.unknownOperators[0].matters);
    QCOMPARE(found.unknownOperators[1].op, std::string("aten::odd"));
    QCOMPARE(found.unknownOperators[1].count, std::size_t{2});
    QVERIFY(found.unknownOperators[1].matters);
    QVERIFY(found.unknownOperators[1].text.starts_with("`aten::odd` (2 times) has no rule"));
  }

  void findsSizesThatDoNotDivide() {
    const auto found =
        preflight(problemOf(test::llamaGraph({.layers = 3, .intermediate = 113}), 2, rules::CandidateSet::Optimum));
    QCOMPARE(found.indivisible.size(), std::size_t{2});
    QCOMPARE(found.indivisible[0].pattern, std::string("model.layers.*.mlp.gate_proj"));
    QCOMPARE(found.indivisible[0].count, std::size_t{3});
    QCOMPARE(found.indivisible[0].bytes, std::int64_t{3 * 113 * 64 * 4});
    QCOMPARE(found.indivisible[0].reason, std::string("113 output features do not divide by 2 ranks"));
  }

  /// An odd vocabulary does not divide by the ranks, but another strategy may still split the layer.
  void reportsThatEveryLayerHasASplitStrategy() {
    const std::string clause = "every layer has a strategy that splits it";
    const auto reports = [&](const test::LlamaSizes& sizes, int ranks, rules::CandidateSet set) {
      const auto clauses = passedChecks(preflight(problemOf(test::llamaGraph(sizes), ranks, set)), ranks);
      return std::find(clauses.begin(), clauses.end(), clause) != clauses.end();
    };
    QVERIFY(reports({.vocab = 257}, 2, rules::CandidateSet::Full));
    QVERIFY(!reports({.intermediate = 113}, 2, rules::CandidateSet::Optimum));
    QVERIFY(!reports({}, 1, rules::CandidateSet::Full));
    for (const auto set : {rules::CandidateSet::Optimum, rules::CandidateSet::Full}) {
      for (int ranks = 2; ranks <= 8; ++ranks) {
        const auto graph = test::llamaGraph();
        const auto found = preflight(problemOf(graph, ranks, set));
        const auto isOfLayer = [&](const ReplicatedWeights& w) {
          return graph::layerShape(*graph, w.first).has_value();
        };
        QCOMPARE(reports({}, ranks, set), found.indivisible.empty() && std::none_of(found.replicated.begin(),
                                                                                    found.replicated.end(), isOfLayer));
      }
    }
  }

  void findsHeadsThatDoNotDivide() {
    const auto found = preflight(problemOf(test::llamaGraph({.layers = 2, .hidden = 48, .heads = 3, .kvHeads = 3}), 2,
                                           rules::CandidateSet::Optimum));
    QCOMPARE(found.indivisible.size(), std::size_t{3});
    QCOMPARE(found.indivisible[0].pattern, std::string("model.layers.*.self_attn.q_proj"));
    QVERIFY2(found.indivisible[0].reason.ends_with("3 heads do not divide by 2 ranks"),
             found.indivisible[0].reason.c_str());
    // The full candidate set gathers the columns, so these layers can be split.
    QVERIFY(preflight(problemOf(test::llamaGraph({.layers = 2, .hidden = 48, .heads = 3, .kvHeads = 3}), 2))
                .indivisible.empty());
  }

  void sumsReplicatedWeights() {
    const auto found = preflight(problemOf(test::llamaGraph({.layers = 3}), 2));
    const ReplicatedWeights* norms = find(found.replicated, "model.layers.*.input_layernorm.weight");
    QVERIFY(norms);
    QCOMPARE(norms->count, std::size_t{3});
    QCOMPARE(norms->bytes, std::int64_t{3 * 64 * 4});
    QCOMPARE(found.replicatedBytes, std::int64_t{(3 * 2 + 1) * 64 * 4});
    for (const ReplicatedWeights& group : found.replicated) QVERIFY(!group.why.empty());
  }

  void reportsNothingForOneRank() {
    const auto found = preflight(problemOf(test::llamaGraph(), 1));
    QVERIFY(found.replicated.empty() && found.indivisible.empty() && found.replicatedBytes == 0);
  }

  void judgesEveryWorldSize() {
    const auto problem = problemOf(test::llamaGraph({.hidden = 64, .heads = 8, .kvHeads = 8, .intermediate = 112}), 2,
                                   rules::CandidateSet::Optimum);
    const auto sizes = worldSizes(problem, solve::Engine::Learning, upTo(16));
    QCOMPARE(sizes.size(), std::size_t{16});
    for (const WorldSize& size : sizes) {
      const std::string where =
          fmt::format("{} ranks: {} of {}: {}", size.ranks, size.layers.split, size.layers.layers, toText(size));
      QVERIFY2(size.why.empty() == (size.verdict == WorldSizeVerdict::Works), where.c_str());
      const bool divides = size.ranks == 1 || size.ranks == 2 || size.ranks == 4 || size.ranks == 8;
      QVERIFY2((size.verdict == WorldSizeVerdict::Works) == divides, where.c_str());
      QVERIFY2(size.layers.layers > 0 && size.layers.split <= size.layers.layers, where.c_str());
    }
    QVERIFY2(sizes[2].why.find("3 ranks") != std::string::npos, sizes[2].why.c_str());
    QCOMPARE(sizes[0].layers.split, std::size_t{0});
  }

  void explainsAMissingSolution() {
    auto problem = problemOf(test::llamaGraph(), 2, rules::CandidateSet::Optimum);
    problem.pins.push_back(*solve::Pin::parse("lm_head=column"));
    const auto sizes = worldSizes(problem, solve::Engine::Learning, std::vector<int>{2, 3});
    QVERIFY(sizes[0].verdict == WorldSizeVerdict::Works);
    QVERIFY(sizes[1].verdict == WorldSizeVerdict::NoSolution);
    QVERIFY2(sizes[1].why.find("256 output features do not divide by 3 ranks") != std::string::npos,
             sizes[1].why.c_str());
  }

  void returnsTheResultsSoFarWhenCancelled() {
    std::stop_source source;
    const auto problem = problemOf(test::llamaGraph(), 2);
    const Progress progress(source.get_token(), [&](const ProgressUpdate& update) {
      if (update.stage == "world sizes" && update.done == 3) source.request_stop();
    });
    QCOMPARE(worldSizes(problem, solve::Engine::Learning, upTo(64), progress).size(), std::size_t{3});
  }
};

QTEST_APPLESS_MAIN(TestPreflight)
#include "tst_preflight.moc"
