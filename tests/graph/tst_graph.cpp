#include "graph/blocks.h"
#include "graph/freezing.h"
#include "graph/gradients.h"
#include "graph/graph.h"
#include "graph/graph_builder.h"
#include "graph/json.h"
#include "graph/layers.h"
#include "tests/support/cases.h"
#include "tests/support/rows.h"

#include <QTest>
#include <nlohmann/json.hpp>

using namespace cleave;
using namespace cleave::graph;

namespace {

// moc does not parse raw strings that contain quotes.
constexpr const char* kSmall =
    "graph small\n"
    "root SmallModel\n"
    "scope model\n"
    "scope model.fc Linear\n"
    "tied fc.weight head.weight\n"
    "frozen fc.weight\n"
    "x: f32[2,8] = input\n"
    "fc.weight: bf16[16,8] = parameter @model.fc\n"
    "scale: f32[1] = constant\n"
    "linear_0: f32[2,16] = aten::linear(x, fc.weight, None) @model.fc #3\n"
    "max_0: f32[2], max_1: i64[2] = aten::max.dim(linear_0, -1, false)\n"
    "odd: f32[2,16] = aten::odd(linear_0, [linear_0, None], [1, -2], [1.5, inf], [true, false], \"a \\\"b\\\"\", :f16, "
    "device, -0.5, nan, [])\n"
    "return y=max_0, z=odd\n";

Graph parsed(std::string_view text) {
  auto graph = parseGraph(text);
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return std::move(*graph);
}

std::string refusalOf(const test::Case& asked) {
  const auto graph = parseGraph(asked.question);
  if (graph) return "a graph";
  return (graph.error().code == ErrorCode::BadInput ? "bad input: " : "not a matter of input: ") +
         graph.error().message;
}

/// The argument of the last node.
std::string layerOf(const test::Case& asked) {
  const Graph graph = parsed(asked.question);
  const auto layer = layerShape(graph, NodeId(graph.nodes.size() - 1));
  if (!layer) return "no layer";
  switch (layer->kind) {
    case LayerKind::Linear: return fmt::format("linear, outputs on axis {}", layer->outAxis);
    case LayerKind::Embedding: return "embedding";
    case LayerKind::CrossEntropy: return "loss";
    case LayerKind::Experts: return "experts";
  }
  return "a kind without a name";
}

}  // namespace

class TestGraph : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"graph", {{"refusals", refusalOf}, {"layers", layerOf}}};

 private slots:
  void whatIsFrozenHasNoGradient() {
    Graph graph = parsed(
        "a.weight: f32[8,8] = parameter\n"
        "b.weight: f32[8,8] = parameter\n"
        "x: f32[2,8] = input\n"
        "linear_0: f32[2,8] = aten::linear(x, a.weight, None)\n"
        "linear_1: f32[2,8] = aten::linear(linear_0, b.weight, None)\n"
        "sum_0: f32[] = aten::sum(linear_1, None)\n"
        "return loss=sum_0\n");
    const ValueId a = graph.findValue("a.weight"), b = graph.findValue("b.weight"),
                  between = graph.findValue("linear_0");
    QVERIFY(findGradients(graph).of(a) && findGradients(graph).of(between));
    QVERIFY(freezeParameters(graph, {.freeze = {"a.*"}, .trainOnly = {}}));
    // No value before b.weight needs a gradient now.
    QVERIFY(!findGradients(graph).of(a) && !findGradients(graph).of(between) && findGradients(graph).of(b));
    const auto nobody = freezeParameters(graph, {.freeze = {}, .trainOnly = {"a.*"}});
    QVERIFY(!nobody);
    QCOMPARE(nobody.error().message, "No parameter is left to train. Relax --freeze or --train-only.");
    const auto unknown = freezeParameters(graph, {.freeze = {"c.*"}, .trainOnly = {}});
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().message,
             "--freeze \"c.*\" does not match any parameter of the model. Its first parameter is a.weight.");
  }

  void modulesOfAListAreInABlock_data() {
    const test::Rows<QString, QString> row("module", "block");
    row("a layer's part", "model.layers.3.mlp.up_proj", "model.layers.3");
    row("the layer itself", "model.layers.12", "model.layers.12");
    row("an expert of a layer", "model.layers.3.experts.7.up", "model.layers.3");
    row("a list at the root", "0.linear", "0");
    row("in no list", "model.norm2", "");
    row("the root", "", "");
  }
  void modulesOfAListAreInABlock() {
    QFETCH(QString, module);
    QTEST(QString::fromStdString(blockPath(module.toStdString())), "block");
  }

  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }

  void textRoundTripsEveryKindOfArgument() { QCOMPARE(toText(parsed(kSmall)), std::string(kSmall)); }

  void jsonRoundTripsEveryKindOfArgument() {
    const Graph graph = parsed(kSmall);
    const auto json = toJson(graph);
    const auto again = graphFromJson(nlohmann::json::parse(json));
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toText(*again), std::string(kSmall));
    QCOMPARE(toJson(*again), json);
    QCOMPARE(again->constants.size(), std::size_t{1});
  }

  void usersAreListedOnceInOrder() {
    const Graph graph = parsed(kSmall);
    const Value& linear = graph.value(graph.findValue("linear_0"));
    QCOMPARE(linear.users.size(), std::size_t{2});
    QVERIFY(linear.users[0] < linear.users[1]);
  }

  void namesAreUniqueAndCountedPerOperator() {
    GraphBuilder builder;
    const ValueId x = builder.addInput("add_0", {DType::Float32, {2}});
    builder.addCall("aten::add.Tensor", {x, x}, {{DType::Float32, {2}}});
    builder.addCall("aten::add.Scalar", {x, std::int64_t{1}}, {{DType::Float32, {2}}});
    const Graph graph = *std::move(builder).finish();
    QCOMPARE(graph.values[1].name, std::string("add_0_1"));
    QCOMPARE(graph.values[2].name, std::string("add_1"));
  }

  void scopesFormATreeWithTheirAncestors() {
    GraphBuilder builder;
    const ScopeId deep = builder.scope("model.layers.0.mlp", "MLP");
    QCOMPARE(builder.scope("model.layers.0.mlp"), deep);
    const Graph graph = *std::move(builder).finish();
    QCOMPARE(graph.scopes.size(), std::size_t{5});
    QCOMPARE(graph.scope(graph.scope(deep).parent).path, std::string("model.layers.0"));
    QVERIFY(!graph.findScope("model.layer").isValid());
  }

  void refusesBrokenJson_data() {
    const test::Rows<QString, QString> row("change", "phrase");
    row("operator index", "[{\"op\":\"replace\",\"path\":\"/nodes/3/op\",\"value\":99}]", "graph.nodes[3].op");
    row("later value", "[{\"op\":\"replace\",\"path\":\"/nodes/3/args/0\",\"value\":{\"v\":4}}]",
        "graph.nodes[3].args[0]");
    row("type", "[{\"op\":\"replace\",\"path\":\"/nodes/0/out/0/1\",\"value\":\"f32[2,x]\"}]", "graph.nodes[0].out");
    row("odd hex", "[{\"op\":\"replace\",\"path\":\"/nodes/2/data\",\"value\":\"abc\"}]", "hexadecimal");
    row("short data", "[{\"op\":\"replace\",\"path\":\"/nodes/2/data\",\"value\":\"abcd\"}]", "needs 4");
    row("class is a number", "[{\"op\":\"add\",\"path\":\"/scopes/1/class\",\"value\":5}]",
        "graph.scopes[1].class must be a text, but it is 5");
    row("scope is a list", "[{\"op\":\"add\",\"path\":\"/nodes/0/scope\",\"value\":[[[]]]}]",
        "graph.nodes[0].scope must be an integer from 0");
    row("scope before its parent", "[{\"op\":\"replace\",\"path\":\"/scopes/1/path\",\"value\":\"a.b\"}]",
        "its parent does not come before it");
    row("1,002 dimensions",
        "[{\"op\":\"replace\",\"path\":\"/nodes/0/out/0/1\",\"value\":\"f32[1" + QString(",1").repeated(1001) + "]\"}]",
        "must be a tensor type such as f32[2,8], of at most 64 dimensions");
    row("a frozen name without a parameter", "[{\"op\":\"add\",\"path\":\"/frozen\",\"value\":[\"x\"]}]",
        "The graph freezes 1 parameters, but only 0 of them exist.");
    row("tied is a number", "[{\"op\":\"add\",\"path\":\"/tied\",\"value\":7}]",
        "graph.tied must be an object, but it is 7");
    row("no nodes", "[{\"op\":\"remove\",\"path\":\"/nodes\"}]", "graph.nodes is missing");
    row("output", "[{\"op\":\"replace\",\"path\":\"/outputs/0/1\",\"value\":1000}]", "graph.outputs[0]");
  }
  void refusesBrokenJson() {
    QFETCH(QString, change);
    QFETCH(QString, phrase);
    const auto whole = nlohmann::json::parse(toJson(parsed(kSmall)));
    const auto json = whole.patch(nlohmann::json::parse(change.toStdString()));
    const auto graph = graphFromJson(json);
    QVERIFY(!graph);
    QVERIFY2(QString::fromStdString(graph.error().message).contains(phrase), graph.error().message.c_str());
  }

  void layersAreNamedAfterTheirModule() {
    const Graph graph = parsed(
        "x: f32[2,8] = input\nmodel.fc.weight: f32[16,8] = parameter\n"
        "a: f32[2,16] = aten::linear(x, model.fc.weight, None) @model.head\nb: f32[2,16] = aten::linear(x, "
        "model.fc.weight, None)");
    QCOMPARE(layerName(graph, NodeId(2)), std::string("model.head"));
    QCOMPARE(layerName(graph, NodeId(3)), std::string("model.fc"));
  }

  void readsEveryDialectOfDtypes() {
    for (const char* text : {"bf16", "bfloat16", "torch.bfloat16", "BF16"})
      QCOMPARE(parseDType(text), std::optional(DType::BFloat16));
    QVERIFY(!parseDType("float31"));
  }
};

QTEST_APPLESS_MAIN(TestGraph)
#include "tst_graph.moc"
