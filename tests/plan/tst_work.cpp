/// Layers by strategy, with the bytes of their weights and their FLOPs.
#include "plan/text/work.h"

#include "graph/layers.h"
#include "solve/cost/flops.h"
#include "solve/problem/layer_count.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <cmath>

using namespace cleave;
using namespace cleave::plan;

namespace {

solve::Problem problemOf(std::shared_ptr<const Graph> graph, int ranks,
                         rules::CandidateSet candidateSet = rules::CandidateSet::Optimum) {
  solve::Problem problem;
  problem.graph = std::move(graph);
  problem.context = {ranks, candidateSet, rules::SequenceParallel::Off};
  return problem;
}

WorkTally tallyOf(const solve::Problem& problem) {
  const auto result = test::record(std::make_shared<const solve::Problem>(problem)).result;
  if (!result.solution) qFatal("no solution");
  const std::vector<NodeWork> work = workOf(*problem.graph);
  WorkTally tally;
  std::size_t splitLayers = 0, gathered = 0;
  for (const NodeId node : idRange<NodeId>(work.size())) {
    const auto& option = result.solution->strategies[node.index()];
    const LayerSplit split =
        option ? layerSplit(option->strategy, option->weight, problem.context.worldSize) : LayerSplit::Open;
    splitLayers += work[node.index()].isCounted && splitsWeight(split);
    gathered += work[node.index()].isCounted && split == LayerSplit::ColumnGather;
    tally.add(work[node.index()], split);
  }
  // Texts and views must have the same count.
  const solve::LayerCount count = solve::countLayers(*problem.graph, &*result.solution, problem.context.worldSize);
  if (count != solve::LayerCount{splitLayers, tally.total().layers, gathered})
    qFatal("%zu of %zu layers, not %zu", count.split, count.layers, splitLayers);
  return tally;
}

/// A device on which time depends only on FLOPs.
solve::DeviceProfile computeOnly() {
  solve::DeviceProfile profile;
  profile.halfFlopsPerSecond = profile.floatFlopsPerSecond = profile.doubleFlopsPerSecond = 1e12;
  profile.memoryBytesPerSecond = std::numeric_limits<double>::infinity();
  return profile;
}

}  // namespace

class TestWork : public QObject {
  Q_OBJECT
 private slots:
  void countsEachLayerOnceByStrategy() {
    const test::LlamaSizes sizes{.layers = 3};
    const WorkTally tally = tallyOf(problemOf(test::llamaGraph(sizes), 2));
    QCOMPARE(tally.of(LayerSplit::Column).layers, 3u * 5 + 1);  // q, k, v, gate, up; lm_head
    QCOMPARE(tally.of(LayerSplit::Row).layers, 3u * 2);         // o, down: split work, replicated results
    QCOMPARE(tally.of(LayerSplit::Vocab).layers, 1u);           // the embedding; the loss has no parameter
    QCOMPARE(tally.total().layers, 3u * 7 + 2);
    const std::int64_t perLayer = 2 * sizes.hidden * sizes.hidden +
                                  2 * sizes.hidden * (sizes.hidden / sizes.heads * sizes.kvHeads) +
                                  3 * sizes.hidden * sizes.intermediate;
    QCOMPARE(tally.total().weightBytes, 4 * (3 * perLayer + 2 * sizes.vocab * sizes.hidden));
    QCOMPARE(tally.of(LayerSplit::Vocab).weightBytes, 4 * sizes.vocab * sizes.hidden);
    QCOMPARE(tally.of(LayerSplit::Vocab).flops, 0.0);
  }

  void copiesOnAllRanksCountAsReplicated() {
    // One KV head on 2 ranks: k and v are "column" with as many copies as ranks.
    const auto graph = test::llamaGraph({.layers = 1, .heads = 4, .kvHeads = 1});
    const WorkTally tally = tallyOf(problemOf(graph, 2, rules::CandidateSet::Full));
    QCOMPARE(tally.of(LayerSplit::Replicated).layers, 2u);
    QCOMPARE(tally.of(LayerSplit::Column).layers, 3u + 1);
  }

  void aTiedWeightCountsOnce() {
    const WorkTally tied = tallyOf(problemOf(test::llamaGraph({.layers = 1, .isTied = true}), 2));
    const WorkTally untied = tallyOf(problemOf(test::llamaGraph({.layers = 1}), 2));
    QCOMPARE(untied.total().weightBytes - tied.total().weightBytes, 256 * 64 * 4);
    QCOMPARE(tied.total().layers, untied.total().layers);
  }

  void onOneRankNothingIsSplit() {
    const WorkTally tally = tallyOf(problemOf(test::llamaGraph(), 1));
    QCOMPARE(tally.of(LayerSplit::Replicated).layers, tally.total().layers);
    QVERIFY(tally.flops > 0);
  }

  void flopsEqualTheCostModelOnOneRank() {
    for (const bool isTied : {false, true}) {
      solve::Problem problem = problemOf(test::llamaGraph({.layers = 2, .isTied = isTied}), 1);
      problem.cost.profile = computeOnly();
      const auto result = test::record(std::make_shared<const solve::Problem>(problem)).result;
      const solve::Variables variables(problem);
      const auto costs = solve::CostModel(problem, variables).byNode(*result.solution);
      const auto flops = solve::replicatedFlops(*problem.graph);
      for (const NodeId node : idRange<NodeId>(flops.size()))
        QCOMPARE(static_cast<double>(costs[node.index()].computeFs),
                 flops[node.index()] * 1e3);  // 1e15 fs / 1e12 FLOPs
    }
  }

  void aLayerOnTheSequenceHasAReplicatedWeight() {
    for (const auto mode : {rules::SequenceParallel::Off, rules::SequenceParallel::On}) {
      for (const int kvHeads : {1, 2, 4}) {
        solve::Problem problem =
            problemOf(test::llamaGraph({.layers = 2, .heads = 4, .kvHeads = kvHeads}), 4, rules::CandidateSet::Full);
        problem.context.sequenceParallel = mode;
        const WorkTally tally = tallyOf(problem);
        QCOMPARE(tally.total().layers, 2u * 7 + 2);
      }
    }
    QVERIFY(isSplit(LayerSplit::Sequence) && !splitsWeight(LayerSplit::Sequence));
  }

  void addedWorkCanBeSubtracted() {
    const auto work = workOf(*test::llamaGraph());
    WorkTally tally;
    const auto addAll = [&](int times) {
      for (std::size_t i = 0; i < work.size(); ++i) {
        const auto strategy = static_cast<rules::Strategy>(i % 12);
        tally.add(work[i], layerSplit(strategy, Placement::split(0), 2), times);
      }
    };
    addAll(1);
    QVERIFY(tally.of(LayerSplit::Column).layers > 0 && tally.flops > 0);
    addAll(-1);
    QVERIFY(tally == WorkTally());
  }
};

QTEST_APPLESS_MAIN(TestWork)
#include "tst_work.moc"
