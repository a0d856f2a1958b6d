/// Meanings of dimensions, on a Llama-like graph and on single operators.
#include "graph/dimensions.h"
#include "graph/layers.h"
#include "tests/support/llama_graph.h"

#include <QTest>

using namespace cleave;
using namespace cleave::graph;

namespace {

std::vector<Meaning> meaningsOf(const Graph& graph, ValueId value) { return dimensionMeanings(graph)[value.index()]; }

/// The first result of this operator in this module.
ValueId resultOf(const Graph& graph, std::string_view op, std::string_view scope) {
  for (const Node& node : graph.nodes)
    if (node.kind == NodeKind::Call && graph.opName(node).find(op) != std::string::npos &&
        graph.scope(node.scope).path == scope)
      return node.results[0];
  qFatal("no such operator");
}

}  // namespace

class TestDimensions : public QObject {
  Q_OBJECT
 private slots:
  void aLlamaHasFeaturesHeadsAndAVocabulary() {
    const auto graph = cleave::test::llamaGraph({.layers = 1, .batch = 2});
    using enum Meaning;
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "embedding", "model.embed_tokens")) ==
            (std::vector{Batch, Sequence, Features}));
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "linear", "model.layers.0.self_attn.q_proj")) ==
            (std::vector{Batch, Sequence, Features}));
    const ValueId attention = resultOf(*graph, "scaled_dot_product_attention", "model.layers.0.self_attn");
    QVERIFY(meaningsOf(*graph, attention) == (std::vector{Batch, Heads, Sequence, HeadSize}));
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "linear", "model.layers.0.self_attn.o_proj")) ==
            (std::vector{Batch, Sequence, Features}));
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "linear", "lm_head")) == (std::vector{Batch, Sequence, Vocabulary}));
  }

  void everyMeaningFitsItsValue() {
    const auto graph = cleave::test::llamaGraph({.layers = 2});
    const auto meanings = dimensionMeanings(*graph);
    QCOMPARE(meanings.size(), graph->values.size());
    for (const ValueId value : idRange<ValueId>(meanings.size()))
      QCOMPARE(meanings[value.index()].size(), graph->shapeOf(value).size());
  }

  void aLayerAsWideAsTheVocabularyIsNoVocabulary() {
    const auto graph = cleave::test::llamaGraph({.layers = 1, .intermediate = 256, .vocab = 256});
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "linear", "model.layers.0.mlp.up_proj")).back() == Meaning::Features);
    QVERIFY(meaningsOf(*graph, resultOf(*graph, "linear", "lm_head")).back() == Meaning::Vocabulary);
  }
};

QTEST_APPLESS_MAIN(TestDimensions)
#include "tst_dimensions.moc"
