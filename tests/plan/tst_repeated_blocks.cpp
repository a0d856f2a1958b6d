// An answer for one of many equal blocks is valid for all of them.
#include "plan/replication/repeated_blocks.h"
#include "plan/replication/replication_search.h"
#include "plan/text/reason_text.h"

#include "plan/replication_reason.h"
#include "tests/support/line_diff.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// The replication reasons of all operators in the first or the last block.
std::vector<std::string> reasonsOf(std::int64_t layers, bool isOfLast) {
  test::LlamaSizes sizes;
  sizes.layers = layers;
  sizes.heads = sizes.kvHeads = 3;
  sizes.hidden = 48;
  solve::Problem problem{test::llamaGraph(sizes), context(2), {}};
  problem.cost.memoryBudget = std::int64_t{1} << 40;
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(problem, solve::Engine::Optimal, *sink);
  if (!result || !result->solution) qFatal("no solution");
  ReplicationSearch search(problem, *result->solution, solve::Engine::Optimal, result->optimum.get());
  const std::string block = fmt::format("model.layers.{}.", isOfLast ? layers - 1 : 0);
  std::vector<std::string> found;
  const graph::Graph& graph = *problem.graph;
  for (const auto node : idRange<graph::NodeId>(graph.nodes.size())) {
    const std::string& path = graph.scope(graph.node(node).scope).path;
    if (graph.node(node).kind != graph::NodeKind::Call || !path.starts_with(block)) continue;
    const ReplicationReason replication = search.work(node);
    const auto* cannot = std::get_if<Cannot>(&replication);
    found.push_back(fmt::format("{} {} {} {}", path.substr(block.size()), graph.opName(graph.node(node)),
                                kindOf(replication), cannot ? cannotText(*cannot) : ""));
  }
  return found;
}

}  // namespace

class TestRepeatedBlocks : public QObject {
  Q_OBJECT
 private slots:
  void equalBlocksHaveOneRepresentative() {
    test::LlamaSizes sizes;
    sizes.layers = 12;
    const auto graph = test::llamaGraph(sizes);
    const solve::Variables variables(solve::Problem{graph, context(2), {}});
    const RepeatedBlocks blocks(*graph, variables);
    QVERIFY(blocks.hasMany());
    const auto nodeOf = [&](const std::string& layer) {
      for (const auto node : idRange<graph::NodeId>(graph->nodes.size())) {
        if (graph->node(node).kind == graph::NodeKind::Call && graph::layerName(*graph, node) == layer) return node;
      }
      return graph::NodeId();
    };
    const auto stand = blocks.standOf(nodeOf("model.layers.9.mlp.up_proj"));
    QCOMPARE(graph::layerName(*graph, stand.node), std::string("model.layers.0.mlp.up_proj"));
    QCOMPARE(blocks.standOf(nodeOf("lm_head")).node, nodeOf("lm_head"));
    const auto values = blocks.valuesOf(stand.block);
    QVERIFY(values.size() > 20 && values.size() < graph->values.size() / 3);
    sizes.layers = 2;
    const solve::Problem small{test::llamaGraph(sizes), context(2), {}};
    QVERIFY(!RepeatedBlocks(*small.graph, solve::Variables(small)).hasMany());
  }

  /// Three heads on two ranks. A model of two blocks is searched in full, a model of twelve block by block.
  void manyBlocksHaveTheSameReasonsAsFew() {
    const auto few = reasonsOf(2, false);
    QVERIFY(few.size() > 20);
    const auto report = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
      return QString::fromStdString(test::lineDiff(a, b));
    };
    const auto ofFirst = reasonsOf(12, false), ofLast = reasonsOf(12, true), ofLastOfFew = reasonsOf(2, true);
    QVERIFY2(ofFirst == few, qPrintable(report(few, ofFirst)));
    QVERIFY2(ofLast == ofLastOfFew, qPrintable(report(ofLastOfFew, ofLast)));
  }
};

QTEST_APPLESS_MAIN(TestRepeatedBlocks)
#include "tst_repeated_blocks.moc"
