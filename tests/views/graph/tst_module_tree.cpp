// The module tree: equal modules, stacks, and operator counts.
#include <QtTest>

#include "graph/graph_builder.h"
#include "tests/support/llama_graph.h"
#include "views/graph/model/module_path.h"
#include "views/graph/model/module_tree.h"

using namespace cleave;
using namespace cleave::views;
using graph::GraphBuilder;
using graph::TensorType;

namespace {

const TensorType kRow{graph::DType::Float32, {2, 8}};
const TensorType kWide{graph::DType::Float32, {2, 16}};

/// Five blocks in a list. `odd` makes the middle one.
struct Blocks {
  GraphBuilder builder{"blocks"};
  ValueId at = builder.addInput("x", kRow), mask = builder.addInput("mask", kRow);
  ValueId other = builder.addInput("other", kRow);
  ScopeId scope;

  explicit Blocks(const std::function<void(Blocks&)>& odd) {
    for (int i = 0; i < 5; ++i) {
      scope = builder.scope("layers." + std::to_string(i), "Block");
      i == 2 ? odd(*this) : usual();
    }
    builder.addOutput("y", at);
  }
  void usual() { block(mask, 2.0, kRow, "norm"); }
  void block(ValueId masked, double factor, const TensorType& inner, const std::string& name) {
    const ScopeId below = builder.scope(builder.current().scope(scope).path + "." + name, "Norm");
    const ValueId weight = builder.addParameter(builder.current().scope(below).path + ".weight", inner, below);
    const ValueId scaled = call("aten::mul.Scalar", {at, factor}, inner, below);
    const ValueId normed = call("aten::mul.Tensor", {scaled, weight}, inner, below);
    at = call("aten::add.Tensor", {normed, masked}, kRow, scope);
  }
  ValueId call(const char* op, std::vector<graph::Argument> args, const TensorType& type, ScopeId in) {
    return builder.addCall(op, std::move(args), {type}, in)[0];
  }
  ModuleTree tree() && {
    auto graph = std::move(builder).finish();
    if (!graph) qFatal("%s", graph.error().message.c_str());
    return ModuleTree(std::make_shared<const graph::Graph>(std::move(*graph)));
  }
};

ScopeId layer(const ModuleTree& tree, int i) { return tree.graph().findScope("layers." + std::to_string(i)); }

/// The items right below the list: "0x3 5 norm".
QString shapeOf(const ModuleTree& tree, const char* list) {
  QStringList parts;
  for (const TreeItemId id : tree.item(tree.itemOf(tree.graph().findScope(list))).children) {
    const TreeItem& item = tree.item(id);
    const std::string_view name = lastPart(tree.graph().scope(item.scope).path);
    parts << QString::fromUtf8(name.data(), qsizetype(name.size())) +
                 (item.stackSize ? QStringLiteral("x%1").arg(item.stackSize) : QString());
  }
  return parts.join(QLatin1Char(' '));
}

}  // namespace

class TestModuleTree : public QObject {
  Q_OBJECT
 private slots:
  void equalNeighboursAreAStack() {
    const ModuleTree tree = Blocks([](Blocks& b) { b.usual(); }).tree();
    QCOMPARE(shapeOf(tree, "layers"), QStringLiteral("0x5"));
    const TreeItemId stack = tree.stackOf(layer(tree, 0), layer(tree, 4));
    QVERIFY(stack.isValid());
    QCOMPARE(tree.item(stack).operators, 15u);
    QCOMPARE(tree.operatorsIn(layer(tree, 3)), 3u);
    QCOMPARE(tree.item(tree.root()).operators, 15u);
    QVERIFY(tree.item(tree.itemOf(layer(tree, 3))).parent == stack);
    QVERIFY(!tree.stackOf(layer(tree, 0), layer(tree, 3)).isValid());
    QVERIFY(!tree.isEqual(tree.graph().findScope("layers"), tree.graph().findScope("layers")));  // not in a list
  }

  void whatDiffersIsNotEqual_data() {
    QTest::addColumn<std::function<void(Blocks&)>>("odd");
    const auto row = [](const char* name, const std::function<void(Blocks&)>& odd) { QTest::newRow(name) << odd; };
    row("a number", [](Blocks& b) { b.block(b.mask, 3.0, kRow, "norm"); });
    row("a shape", [](Blocks& b) { b.block(b.mask, 2.0, kWide, "norm"); });
    row("a name below", [](Blocks& b) { b.block(b.mask, 2.0, kRow, "norm2"); });
    row("another mask", [](Blocks& b) { b.block(b.other, 2.0, kRow, "norm"); });
    row("one operator more", [](Blocks& b) {
      b.usual();
      b.at = b.call("aten::relu", {b.at}, kRow, b.scope);
    });
    row("what is read after it", [](Blocks& b) {
      const ValueId before = b.at;
      b.usual();
      b.at = before;  // the next block skips this result
    });
  }
  void whatDiffersIsNotEqual() {
    QFETCH(std::function<void(Blocks&)>, odd);
    const ModuleTree tree = Blocks(odd).tree();
    QVERIFY(tree.isEqual(layer(tree, 0), layer(tree, 1)));
    QVERIFY(!tree.isEqual(layer(tree, 1), layer(tree, 2)));
    QVERIFY(tree.isEqual(layer(tree, 1), layer(tree, 3)));
    QCOMPARE(shapeOf(tree, "layers"), QStringLiteral("0 1 2 3 4"));
  }

  void numbersThatDoNotFollowAreNoStack() {
    GraphBuilder b("gaps");
    ValueId at = b.addInput("x", kRow);
    for (const char* path : {"l.0", "l.1", "l.2", "l.5", "l.6", "l.norm"})
      at = b.addCall("aten::relu", {at}, {kRow}, b.scope(path, "Block"))[0];
    b.addOutput("y", at);
    auto graph = std::move(b).finish();
    QVERIFY(graph);
    const ModuleTree tree(std::make_shared<const graph::Graph>(std::move(*graph)));
    QCOMPARE(shapeOf(tree, "l"), QStringLiteral("0x3 5 6 norm"));
  }

  void everyModuleHasItsItemAndCounts() {
    const auto graph = cleave::test::llamaGraph({.layers = 4});
    const ModuleTree tree(graph);
    std::size_t stacks = 0;
    for (const TreeItemId id : idRange<TreeItemId>(tree.size())) {
      const TreeItem& item = tree.item(id);
      stacks += item.stackSize > 0;
      if (item.stackSize == 0) QVERIFY(tree.itemOf(item.scope) == id);
      std::uint32_t own = 0;
      for (const graph::Node& node : graph->nodes)
        own += item.stackSize == 0 && node.kind == graph::NodeKind::Call && node.scope == item.scope;
      for (const TreeItemId child : item.children) {
        QVERIFY(tree.item(child).parent == id && tree.item(id).children[tree.item(child).row] == child);
        own += tree.item(child).operators;
      }
      QCOMPARE(item.operators, own);
    }
    QCOMPARE(stacks, std::size_t(1));
    QCOMPARE(tree.size(), graph->scopes.size() + stacks);
  }
};

QTEST_GUILESS_MAIN(TestModuleTree)
#include "tst_module_tree.moc"
