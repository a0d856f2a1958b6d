// Changes to a graph: replaced, inserted and removed calls, and calls that must stay.
#include "graph/rewrite.h"
#include "graph/verify.h"

#include <QTest>

using namespace cleave;
using graph::Graph;
using graph::Rewrite;

namespace {

constexpr std::string_view kProgram = R"(graph g
x: f32[3,4] = input
w: f32[6,4] = parameter @fc
t: f32[4,6] = aten::permute(w, [1,0]) @fc
idle: f32[4,6] = aten::view(t, [4,6]) @fc
y: f32[3,6] = aten::mm(x, t) @fc
unread: f32[3,6] = aten::relu(y)
return y=y
)";

Graph parsed() {
  auto graph = graph::parseGraph(kProgram);
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return *std::move(graph);
}

graph::NodeId producerOf(const Graph& graph, std::string_view value) {
  return graph.value(graph.findValue(value)).producer;
}

}  // namespace

class TestRewrite : public QObject {
  Q_OBJECT
 private slots:
  /// Removing the permute also removes its unread view; calls that were unread before stay.
  void removesCallsThatLostTheirReaders() {
    Graph graph = parsed();
    Rewrite rewrite(graph);
    rewrite.replace(producerOf(graph, "y"), "aten::linear",
                    {graph.findValue("x"), graph.findValue("w"), graph::Argument()});
    QVERIFY(std::move(rewrite).apply());
    QVERIFY(graph::verify(graph));
    QVERIFY(!graph.findValue("t").isValid() && !graph.findValue("idle").isValid());
    QVERIFY(graph.findValue("unread").isValid());
    QCOMPARE(QString::fromStdString(graph.outputs[0].name), QString("y"));
    QCOMPARE(graph.value(graph.outputs[0].value).name, std::string("linear_0"));
    QCOMPARE(graph.value(graph.findValue("w")).users.size(), std::size_t(1));
  }

  /// On request, calls that were never read are removed too, readers first. Inputs, parameters and required calls stay.
  void removesCallsThatWereNeverRead() {
    Graph graph = parsed();
    Rewrite rewrite(graph);
    rewrite.dropUnread([](const graph::Node&) { return false; });
    QVERIFY(std::move(rewrite).apply());
    QVERIFY(graph::verify(graph));
    QVERIFY(!graph.findValue("idle").isValid() && !graph.findValue("unread").isValid());
    QVERIFY(graph.findValue("t").isValid() && graph.findValue("y").isValid() && graph.findValue("w").isValid());

    Graph kept = parsed();
    Rewrite keeping(kept);
    keeping.dropUnread([&](const graph::Node& node) { return kept.opName(node) == "aten::relu"; });
    QVERIFY(std::move(keeping).apply());
    QVERIFY(kept.findValue("unread").isValid() && !kept.findValue("idle").isValid());
  }

  void putsCallsInFrontOfAnother() {
    Graph graph = parsed();
    Rewrite rewrite(graph);
    const auto product = producerOf(graph, "y");
    const auto doubled =
        rewrite.insert(product, "aten::add.Tensor", {graph.findValue("x"), graph.findValue("x"), std::int64_t{1}},
                       {graph::DType::Float32, {3, 4}});
    rewrite.replace(product, "aten::mm", {doubled, graph.findValue("t")});
    QVERIFY(std::move(rewrite).apply());
    QVERIFY(graph::verify(graph));
    const auto made = producerOf(graph, "add_0");
    QCOMPARE(graph.scope(graph.node(made).scope).path, std::string("fc"));
    QVERIFY(made.index() < producerOf(graph, "mm_0").index());
  }

  void aKnownResultIsAConstant() {
    Graph graph = parsed();
    Rewrite rewrite(graph);
    std::vector<std::byte> data(24 * sizeof(float), std::byte{7});
    rewrite.replaceByConstant(producerOf(graph, "t"), data);
    QVERIFY(std::move(rewrite).apply());
    QVERIFY(graph::verify(graph));
    const auto constant = producerOf(graph, "t");
    QVERIFY(graph.node(constant).kind == graph::NodeKind::Constant);
    QVERIFY(graph.constants.at(constant.raw()) == data);
    QVERIFY(graph.value(graph.findValue("w")).users.empty());
  }

  void withoutChangesTheGraphIsAsItWas() {
    Graph graph = parsed();
    const std::string before = graph::toText(graph);
    QVERIFY(!Rewrite(graph).apply());
    QCOMPARE(graph::toText(graph), before);
  }
};

QTEST_APPLESS_MAIN(TestRewrite)
#include "tst_rewrite.moc"
