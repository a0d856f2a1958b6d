// What is asked of one of many equal blocks holds of all of them.
#include "plan/repeated_blocks.h"

#include "plan/standing.h"
#include "tests/support/line_diff.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// The standings of all work of the first and of the last block but those of its attention's operands, by operator.
std::vector<std::string> standingsOf(std::int64_t layers, bool isOfLast) {
  test::LlamaSizes sizes;
  sizes.layers = layers;
  sizes.heads = sizes.kvHeads = 3;
  sizes.hidden = 48;
  solve::Problem problem{test::llamaGraph(sizes), context(2), {}};
  problem.cost.memoryBudget = std::int64_t{1} << 40;
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(problem, solve::Engine::Optimal, *sink);
  if (!result || !result->solution) qFatal("no solution");
  Standings standings(problem, *result->solution, solve::Engine::Optimal, result->optimum.get());
  const std::string block = fmt::format("model.layers.{}.", isOfLast ? layers - 1 : 0);
  std::vector<std::string> found;
  const graph::Graph& graph = *problem.graph;
  for (const auto node : idRange<graph::NodeId>(graph.nodes.size())) {
    const std::string& path = graph.scope(graph.node(node).scope).path;
    if (graph.node(node).kind != graph::NodeKind::Call || !path.starts_with(block)) continue;
    const Standing standing = standings.work(node);
    const auto* cannot = std::get_if<Cannot>(&standing);
    found.push_back(fmt::format("{} {} {} {}", path.substr(block.size()), graph.opName(graph.node(node)),
                                kindOf(standing), cannot ? cannotText(*cannot) : ""));
  }
  return found;
}

}  // namespace

class TestRepeatedBlocks : public QObject {
  Q_OBJECT
 private slots:
  void equalBlocksStandForEachOther() {
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

  /// Three heads on two ranks: a model of two blocks is asked as a whole, one of twelve block by block.
  void manyBlocksAreToldWhatFewAre() {
    const auto few = standingsOf(2, false);
    QVERIFY(few.size() > 20);
    const auto report = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
      return QString::fromStdString(test::lineDiff(a, b));
    };
    const auto ofFirst = standingsOf(12, false), ofLast = standingsOf(12, true), ofLastOfFew = standingsOf(2, true);
    QVERIFY2(ofFirst == few, qPrintable(report(few, ofFirst)));
    QVERIFY2(ofLast == ofLastOfFew, qPrintable(report(ofLastOfFew, ofLast)));
  }
};

QTEST_APPLESS_MAIN(TestRepeatedBlocks)
#include "tst_repeated_blocks.moc"
