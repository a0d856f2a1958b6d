/// A product with a parameter is a layer, for every way to prepare the parameter.
#include "graph/verify.h"
#include "graph/weights.h"

#include "graph/layers.h"
#include "graph/reordered_sums.h"
#include "tests/support/rows.h"

#include <QTest>

using namespace cleave;
using namespace cleave::graph;

namespace {

Graph parsed(const std::string& text) {
  auto graph = parseGraph(text);
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return std::move(*graph);
}

/// The layers of a graph by name: the product, and its parameters.
QStringList layersOf(const Graph& graph) {
  QStringList layers;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = layerShape(graph, id);
    if (!layer) continue;
    QStringList parameters;
    for (const ValueId parameter : parametersOf(graph, layer->weight))
      parameters << QString::fromStdString(graph.value(parameter).name);
    layers << QString::fromStdString(layerName(graph, id)) + " of " + parameters.join(", ");
  }
  return layers;
}

constexpr const char* kInput = "x: f32[4,8] = input\n";

}  // namespace

class TestWeights : public QObject {
  Q_OBJECT
 private slots:
  void layersAreFoundThroughPreparedWeights_data() {
    const test::Rows<QString, QStringList> row("body", "layers");
    row("a parameter", "w: f32[6,8] = parameter\nlinear_0: f32[4,6] = aten::linear(x, w, None)\n",
        QStringList{"w of w"});
    row("a cast",
        "up.weight: f32[6,8] = parameter\n"
        "c: bf16[6,8] = aten::_to_copy(up.weight, :bf16)\n"
        "y: bf16[4,8] = aten::_to_copy(x, :bf16)\n"
        "linear_0: bf16[4,6] = aten::linear(y, c, None)\n",
        QStringList{"up of up.weight"});
    row("a transposition, and a cast",
        "kernel: f32[6,8] = parameter\n"
        "t: f32[8,6] = aten::permute(kernel, [1, 0])\n"
        "c: f32[8,6] = aten::clone(t, None)\n"
        "mm_0: f32[4,6] = aten::mm(x, c)\n",
        QStringList{"kernel of kernel"});
    row("pieces of a packed one",
        "attn.in_proj_weight: f32[12,8] = parameter\n"
        "q: f32[4,8] = aten::slice.Tensor(attn.in_proj_weight, 0, 0, 4, 1)\n"
        "k: f32[8,8] = aten::slice.Tensor(attn.in_proj_weight, 0, 4, 12, 1)\n"
        "linear_0: f32[4,4] = aten::linear(x, q, None)\n"
        "linear_1: f32[4,8] = aten::linear(x, k, None)\n",
        QStringList{"attn.in_proj_weight[0:4] of attn.in_proj_weight",
                    "attn.in_proj_weight[4:12] of attn.in_proj_weight"});
    row("one of several",
        "experts.up: f32[3,6,8] = parameter\n"
        "e: f32[6,8] = aten::select.int(experts.up, 0, 2)\n"
        "linear_0: f32[4,6] = aten::linear(x, e, None)\n",
        QStringList{"experts.up.2 of experts.up"});
    row("a merged adapter is one layer",
        "l.weight: f32[6,8] = parameter\n"
        "l.a: f32[2,8] = parameter\n"
        "l.b: f32[6,2] = parameter\n"
        "mm_0: f32[6,8] = aten::mm(l.b, l.a)\n"
        "add_0: f32[6,8] = aten::add.Tensor(l.weight, mm_0, 1)\n"
        "linear_0: f32[4,6] = aten::linear(x, add_0, None)\n",
        QStringList{"l of l.weight, l.a, l.b"});
    row("learned tokens are an input",
        "tokens: f32[4,8] = parameter\n"
        "p.weight: f32[6,8] = parameter\n"
        "linear_0: f32[4,6] = aten::linear(tokens, p.weight, None)\n",
        QStringList{"p of p.weight"});
    row("one activation by another",
        "t: f32[8,4] = aten::permute(x, [1, 0])\n"
        "mm_0: f32[4,4] = aten::mm(x, t)\n",
        QStringList{});
    row("a column of numbers",
        "frequencies: f32[3] = parameter\n"
        "row: f32[1,3] = aten::unsqueeze(frequencies, 0)\n"
        "column: f32[32,1] = aten::view(x, [32, 1])\n"
        "mm_0: f32[32,3] = aten::mm(column, row)\n",
        QStringList{});
  }
  void layersAreFoundThroughPreparedWeights() {
    QFETCH(QString, body);
    QFETCH(QStringList, layers);
    const std::string text = "graph g\nroot M\n" + std::string(kInput) + body.toStdString();
    const std::string last = body.trimmed().section('\n', -1).section(':', 0, 0).toStdString();
    QCOMPARE(layersOf(parsed(text + "return y=" + last + "\n")), layers);
  }

  void reorderedSumsKeepNamesAndTypes() {
    const Graph graph = parsed(
        "graph g\nroot M\nx: f32[4,8] = input\nw: f32[6,8] = parameter\nb: f32[6] = parameter\n"
        "linear_0: f32[4,6] = aten::linear(x, w, b)\nrelu_0: f32[4,6] = aten::relu(linear_0)\nreturn y=relu_0\n");
    const Graph reordered = withReorderedSums(graph, 3);
    QVERIFY(verify(reordered));
    for (const Value& value : graph.values) {
      const ValueId same = reordered.findValue(value.name);
      QVERIFY2(same.isValid() && reordered.value(same).type == value.type, value.name.c_str());
    }
    const auto products = std::count_if(reordered.nodes.begin(), reordered.nodes.end(),
                                        [&](const Node& node) { return reordered.opName(node) == "aten::linear"; });
    QCOMPARE(products, 3);
    QCOMPARE(reordered.opName(reordered.node(reordered.value(reordered.findValue("linear_0")).producer)),
             std::string("aten::add.Tensor"));
  }
};

QTEST_APPLESS_MAIN(TestWeights)
#include "tst_weights.moc"
