// What the canvas draws: modules, templates, hubs, docks, noise. No pixels.
#include <QRandomGenerator>

#include "graph/graph_builder.h"
#include "tests/support/seeds.h"
#include "tests/views/graph/canvas_support.h"
#include "views/graph/model/graph_model_builder.h"
#include "views/graph/scene/legend_drawing.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;
using graph::GraphBuilder;
using graph::TensorType;

namespace {

std::shared_ptr<const graph::Graph> finish(GraphBuilder&& builder) {
  auto graph = std::move(builder).finish();
  CLEAVE_CHECK(graph.has_value(), "{}", graph.error().message);
  return std::make_shared<const graph::Graph>(std::move(*graph));
}

QStringList titles(const GraphModel& model, ModuleId id) {
  QStringList list;
  for (const Member& member : model.module(id).members) {
    if (member.module.isValid())
      list << QString::fromStdString(model.module(member.module).title);
    else if (member.output >= 0)
      list << QStringLiteral("->") + QString::fromStdString(model.graph().outputs[member.output].name);
    else
      list << QString::fromStdString(model.graph().value(model.graph().node(member.node).results[0]).name);
  }
  return list;
}

const TensorType kRow{graph::DType::Float32, {2, 8}};

}  // namespace

class CanvasModel : public QObject {
  Q_OBJECT
 private slots:
  void dissolvesWrappersAndLists() {
    const auto graph = cleave::test::llamaGraph({.layers = 3});
    const GraphModel model = makeGraphModel(treeOf(graph));
    const QStringList root = titles(model, model.root());
    QVERIFY2(root.contains("layers.0") && root.contains("layers.2") && root.contains("norm"),
             qPrintable(root.join(' ')));
    QVERIFY(!root.contains("model"));
    QVERIFY(root.contains("->logits"));
  }

  void hubsAreChipsAndNoEdges() {
    const auto graph = cleave::test::llamaGraph({.layers = 4});
    const GraphModel model = makeGraphModel(treeOf(graph));
    std::size_t hubs = 0;
    for (const auto v : idRange<graph::ValueId>(graph->values.size())) hubs += model.isHub(v);
    QVERIFY(hubs >= 2);  // cos and sin
    for (const auto id : idRange<ModuleId>(model.moduleCount()))
      for (const MemberEdge& edge : model.module(id).edges) QVERIFY(!model.isHub(edge.value));
    QStringList names;
    for (const Member& member : model.module(model.root()).members)
      if (member.module.isValid() && model.module(member.module).title == "layers.1")
        for (const auto hub : model.module(member.module).hubs) names << QString::fromStdString(model.hubName(hub));
    QVERIFY2(names.contains("cos") && names.contains("sin"), qPrintable(names.join(' ')));
  }

  void tiedWeightIsAHubAndOthersDock() {
    const auto graph = cleave::test::llamaGraph({.layers = 2, .isTied = true});
    const GraphModel model = makeGraphModel(treeOf(graph));
    const auto tied = graph->findValue("model.embed_tokens.weight");
    QVERIFY(model.isHub(tied));
    const auto q = graph->findValue("model.layers.0.self_attn.q_proj.weight");
    QVERIFY(q.isValid() && !model.isHub(q));
    const auto reader = model.shownNode(graph->value(q).producer);
    QCOMPARE(model.trimmings(reader).docked, std::vector<graph::ValueId>{q});
    QCOMPARE(QString::fromStdString(model.trimmings(reader).tail), QStringLiteral("q_proj"));
  }

  void noiseIsPassedThroughAndCanBeShown() {
    GraphBuilder b("m");
    const auto x = b.addInput("x", kRow);
    const auto alias = b.addCall("aten::alias", {x}, {kRow})[0];
    const auto relu = b.addCall("aten::relu", {alias}, {kRow})[0];
    const auto same = b.addCall("aten::view", {relu, std::vector<std::int64_t>{2, 8}}, {kRow})[0];
    b.addOutput("y", same);
    const auto graph = finish(std::move(b));
    const GraphModel folded = makeGraphModel(treeOf(graph));
    QCOMPARE(folded.noiseCount(), std::size_t(2));
    QCOMPARE(titles(folded, folded.root()), (QStringList{"x", "relu_0", "->y"}));
    QCOMPARE(folded.shownNode(graph->value(same).producer), graph->value(relu).producer);
    const GraphModel all = makeGraphModel(treeOf(graph), {.foldNoise = false});
    QCOMPARE(all.noiseCount(), std::size_t(0));
    QCOMPARE(all.module(all.root()).members.size(), std::size_t(5));
  }

  /// Unused results of an exported program must not appear as islands next to the model.
  void whatNobodyReadsIsNoise() {
    GraphBuilder b("m");
    const auto x = b.addInput("x", kRow);
    const auto relu = b.addCall("aten::relu", {x}, {kRow})[0];
    const auto first = b.addCall("aten::arange", {std::int64_t(2)}, {kRow})[0];
    const auto unread = b.addCall("aten::neg", {first}, {kRow})[0];
    b.addOutput("y", relu);
    const auto graph = finish(std::move(b));
    const GraphModel folded = makeGraphModel(treeOf(graph));
    QCOMPARE(folded.noiseCount(), std::size_t(2));
    QCOMPARE(titles(folded, folded.root()), (QStringList{"x", "relu_0", "->y"}));
    QVERIFY(!folded.shownNode(graph->value(unread).producer).isValid());
    const GraphModel all = makeGraphModel(treeOf(graph), {.foldNoise = false});
    QCOMPARE(all.module(all.root()).members.size(), std::size_t(5));
  }

  /// T5's blocks are lists of two sublayers each. The blocks repeat, not the sublayers.
  void layersThatOnlyHoldAListKeepTheirBox() {
    GraphBuilder b("m");
    auto x = b.addInput("x", kRow);
    for (int layer = 0; layer < 3; ++layer) {
      for (int part = 0; part < 2; ++part) {
        const auto scope = b.scope(fmt::format("encoder.block.{}.layer.{}", layer, part));
        const auto relu = b.addCall("aten::relu", {x}, {kRow}, scope)[0];
        x = b.addCall("aten::add", {x, relu}, {kRow}, scope)[0];
      }
    }
    b.addOutput("y", x);
    const GraphModel model = makeGraphModel(treeOf(finish(std::move(b))));
    QCOMPARE(titles(model, model.root()), (QStringList{"x", "block.0", "block.1", "block.2", "->y"}));
    const auto& members = model.module(model.root()).members;
    QVERIFY(model.continuesStack(members[1].module, members[2].module));
    QCOMPARE(titles(model, members[1].module), (QStringList{"layer.0", "layer.1"}));
  }

  /// An encoder next to a decoder: neither is a wrapper around almost everything, and both are stacks of layers.
  void twoStacksStandBesideEachOtherByTheirNames() {
    GraphBuilder b("m");
    auto y = b.addInput("x", kRow);
    const auto weight = b.addParameter("model.weight", {graph::DType::Float32, {8, 8}});
    graph::ValueId memory;
    for (const auto& [stack, layers] : {std::pair("encoder", 2), std::pair("decoder", 3)}) {
      for (int layer = 0; layer < layers; ++layer) {
        const auto scope = b.scope(fmt::format("model.{}.layers.{}", stack, layer));
        const auto read = memory.isValid() ? memory : y;
        y = b.addCall("aten::add", {y, b.addCall("aten::linear", {read, weight, {}}, {kRow}, scope)[0]}, {kRow},
                      scope)[0];
      }
      y = b.addCall("aten::neg", {y}, {kRow}, b.scope(fmt::format("model.{}.norm", stack)))[0];
      if (!memory.isValid()) memory = y;  // all of the decoder's layers read it
    }
    b.addOutput("y", y);
    const GraphModel model = makeGraphModel(treeOf(finish(std::move(b))));
    const QStringList wanted{"x",
                             "encoder.layers.0",
                             "encoder.layers.1",
                             "neg_0",
                             "decoder.layers.0",
                             "decoder.layers.1",
                             "decoder.layers.2",
                             "neg_1",
                             "->y"};
    QCOMPARE(titles(model, model.root()), wanted);
    const auto norm = model.graph().value(model.graph().findValue("neg_1")).producer;
    QCOMPARE(model.trimmings(norm).tail, std::string("decoder.norm"));
    QVERIFY(model.isHub(memory));
    QCOMPARE(model.hubName(memory), std::string("encoder.norm"));
  }

  void everyShownNodeIsAMemberExactlyOnce() {
    for (const bool fold : {true, false}) {
      const auto graph = cleave::test::llamaGraph({.layers = 3});
      const GraphModel model = makeGraphModel(treeOf(graph), {.foldNoise = fold});
      std::vector<int> seen(graph->nodes.size(), 0);
      for (const auto id : idRange<ModuleId>(model.moduleCount()))
        for (const Member& member : model.module(id).members)
          if (member.node.isValid()) ++seen[member.node.index()];
      for (const auto n : idRange<graph::NodeId>(graph->nodes.size()))
        QCOMPARE(seen[n.index()], model.shownNode(n) == n ? 1 : 0);
    }
  }

  void graphsWithoutScopesOrNodesAreFine() {
    const GraphModel empty = makeGraphModel(treeOf(std::make_shared<const graph::Graph>()));
    QCOMPARE(empty.module(empty.root()).members.size(), std::size_t(0));
    GraphBuilder b("one");
    const auto x = b.addInput("x", kRow);
    b.addOutput("y", x);
    const GraphModel one = makeGraphModel(treeOf(finish(std::move(b))));
    QCOMPARE(one.module(one.root()).edges.size(), std::size_t(1));
  }

  void boardCountsFollowChanges() {
    const auto graph = cleave::test::llamaGraph({.layers = 2});
    const GraphModel model = makeGraphModel(treeOf(graph));
    SplitCounts counts(treeOf(graph));
    const PlacementBoard board(model, counts);
    MaybePlacement placement;
    std::optional<rules::Strategy> strategy;
    const auto q = graph->value(graph->findValue("linear_0")).producer;
    counts.reset({[&](graph::ValueId v) { return graph->value(v).producer == q ? placement : std::nullopt; },
                  [&](graph::NodeId n) { return n == q ? strategy : std::nullopt; }, 2});
    const SplitTally before = board.tally(model.root()).split;
    QCOMPARE(before.work.of(LayerSplit::Open).layers, 2u * 7 + 2);
    const std::vector<graph::NodeId> changed{q};
    placement = rules::Placement::split(2), strategy = rules::Strategy::Column;
    QVERIFY(counts.update(changed) == changed);
    const SplitTally now = board.tally(model.root()).split;
    QCOMPARE(now.values[int(Tint::Dim2)], 1u);
    QCOMPARE(now.work.of(LayerSplit::Column).layers, 1u);
    QVERIFY(now.work.of(LayerSplit::Column).weightBytes > 0 && now.work.of(LayerSplit::Column).flops > 0);
    QVERIFY(counts.update(changed).empty());
    placement.reset(), strategy.reset();
    counts.update(changed);
    QVERIFY(board.tally(model.root()).split == before);
  }

  void aStackSaysHowManyOfItsModulesDiffer() {
    const auto graph = cleave::test::llamaGraph({.layers = 4});
    const GraphModel model = makeGraphModel(treeOf(graph));
    std::vector<ModuleId> layers;
    for (const auto id : idRange<ModuleId>(model.moduleCount()))
      if (model.module(id).listIndex >= 0 && model.module(id).scope.isValid()) layers.push_back(id);
    QCOMPARE(layers.size(), std::size_t(4));
    const auto index = [&](ModuleId id) { return model.module(id).listIndex; };
    std::sort(layers.begin(), layers.end(), [&](ModuleId a, ModuleId b) { return index(a) < index(b); });
    const auto all = tensorParallel(*graph);
    const auto strategies = megatron(*graph);
    graph::NodeId other;
    for (const auto node : idRange<graph::NodeId>(graph->nodes.size()))
      if (graph::layerShape(*graph, node) && graph::layerName(*graph, node) == "model.layers.2.mlp.up_proj")
        other = node;
    QVERIFY(other.isValid());
    bool isWhole = false, isOpen = false;
    SplitCounts counts(treeOf(graph));
    const PlacementBoard board(model, counts);
    counts.reset({all,
                  [&](graph::NodeId n) -> std::optional<rules::Strategy> {
                    if (n != other) return strategies(n);
                    return isOpen ? std::nullopt : isWhole ? std::optional(rules::Strategy::Replicated) : strategies(n);
                  },
                  2});
    const std::vector<graph::NodeId> changed{other};
    QCOMPARE(board.unlike(layers.front(), layers.back()), 0u);
    isWhole = true;
    counts.update(changed);
    QCOMPARE(board.unlike(layers.front(), layers.back()), 1u);
    QCOMPARE(board.unlike(layers[0], layers[1]), 0u);
    QCOMPARE(board.unlike(layers[2], layers[3]), 1u);
    isOpen = true;  // the running search has decided fewer values of some modules
    counts.update(changed);
    QCOMPARE(board.unlike(layers.front(), layers.back()), 0u);
  }

  void countsAfterAnyUpdatesEqualAFullReset() {
    const auto graph = cleave::test::llamaGraph({.layers = 2});
    const GraphModel model = makeGraphModel(treeOf(graph));
    const auto seed = static_cast<quint32>(cleave::test::seed());
    QRandomGenerator random(seed);
    std::vector<MaybePlacement> placements(graph->values.size());
    std::vector<std::optional<rules::Strategy>> strategies(graph->nodes.size());
    const SplitSource source{[&](graph::ValueId v) { return placements[v.index()]; },
                             [&](graph::NodeId n) { return strategies[n.index()]; }, 2};
    SplitCounts followed(treeOf(graph)), fresh(treeOf(graph));
    followed.reset(source);
    for (std::uint64_t round = 0, rounds = cleave::test::rounds(200); round < rounds; ++round) {
      std::vector<graph::NodeId> changed;
      for (int i = 0; i < 1 + int(random.bounded(20)); ++i) {
        const graph::NodeId node(random.bounded(quint32(graph->nodes.size())));
        for (const auto result : graph->node(node).results) {
          const auto rank = quint32(graph->shapeOf(result).size());
          auto& placement = placements[result.index()];
          placement = random.bounded(3) == 0 ? MaybePlacement()
                      : rank == 0            ? rules::Placement()
                                             : rules::Placement::split(int(random.bounded(rank)));
          // Copies on all ranks do not count as split: a layer's strategy depends on its weight's placement.
          if (placement && placement->isSplit() && random.bounded(2) == 0) placement = placement->withReplicas(2);
        }
        strategies[node.index()] = static_cast<rules::Strategy>(random.bounded(12));
        changed.push_back(node);
      }
      followed.update(changed);
      fresh.reset(source);
      const QString where = QStringLiteral("seed %1 round %2").arg(seed).arg(round);
      for (const auto item : idRange<TreeItemId>(followed.tree().size()))
        QVERIFY2(followed.of(item) == fresh.of(item), qPrintable(where));
      for (const auto id : idRange<ModuleId>(model.moduleCount()))
        QVERIFY2(PlacementBoard(model, followed).tally(id).split == PlacementBoard(model, fresh).tally(id).split,
                 qPrintable(where));
    }
  }

  void copiesOnAllRanksLookWhole() {
    const auto copies = rules::Placement::split(2).withReplicas(2);
    QCOMPARE(tintOf(copies, 2), Tint::Replicated);
    QCOMPARE(tintOf(copies, 4), Tint::Dim2);
    QCOMPARE(chipText(copies), QStringLiteral("S2×2"));
  }

  void legendSaysWhatDimensionsMean() {
    const auto graph = cleave::test::llamaGraph({.layers = 2});
    SplitCounts counts(treeOf(graph));
    counts.reset({tensorParallel(*graph), megatron(*graph), 2});
    LegendContent content;
    setCounts(content, &counts);
    QVERIFY2(content.meanings[int(Tint::Dim1)].startsWith("heads"), qPrintable(content.meanings[int(Tint::Dim1)]));
    QVERIFY2(content.meanings[int(Tint::Dim2)].startsWith("features"), qPrintable(content.meanings[int(Tint::Dim2)]));
    QCOMPARE(content.splits[int(LayerSplit::Row)].layers, 4u);
    QCOMPARE(content.splits[int(LayerSplit::Replicated)].layers, 0u);

    // A strip of two rows shows it. A narrow strip leaves it to the tooltips and saves a row.
    LegendDrawing drawing(Theme::light(), {});
    drawing.setContent(content);
    const auto at = [&](int width) {
      drawing.arrange({width, 100}, 0, {});
      QString texts, tooltips;
      for (const auto& entry : drawing.entries()) texts += entry.text, tooltips += entry.tooltip;
      return std::pair(texts.contains(content.meanings[int(Tint::Dim1)]),
                       tooltips.contains(content.meanings[int(Tint::Dim1)]));
    };
    QCOMPARE(at(2000), std::pair(true, true));
    int narrow = 0;
    for (int width = 300; width < 2000; width += 10) {
      const auto [isWritten, isTold] = at(width);
      QVERIFY(isTold);
      narrow += !isWritten;
      LegendContent bare = content;
      bare.meanings = {};
      const int height = drawing.heightFor(width);
      drawing.setContent(bare);
      const int least = drawing.heightFor(width);
      drawing.setContent(content);
      QVERIFY(height == least || isWritten);  // otherwise leaving it out would save nothing
    }
    QVERIFY(narrow > 0);
  }

  void numbersKnowSingularAndSmallness() {
    QCOMPARE(countedText(1, "conflict"), QStringLiteral("1 conflict"));
    QCOMPARE(countedText(0, "conflict"), QStringLiteral("0 conflicts"));
    QCOMPARE(countedText(2304, "try", "tries"), QStringLiteral("2,304 tries"));
    QCOMPARE(percentText(0.0042), QStringLiteral("0.4 %"));
    QCOMPARE(percentText(0.00042), QStringLiteral("0.04 %"));
    QCOMPARE(percentText(1), QStringLiteral("100 %"));
  }

  void textOnEveryTintIsReadable() {
    for (const Theme& theme : {Theme::light(), Theme::darkTheme()}) {
      for (int t = 0; t < kTintCount; ++t) QVERIFY(contrast(theme.textOn(theme.tints[t]), theme.tints[t]) >= 4.5);
      for (const QColor& split : theme.splits) QVERIFY(contrast(theme.textOn(split), split) >= 4.5);
      // Without hue: each strategy has a pattern of its own, each split dimension too.
      for (std::size_t a = 0; a < kLayerSplits; ++a)
        for (std::size_t b = 0; b < a; ++b)
          QVERIFY(theme.pattern(static_cast<LayerSplit>(a)).style() !=
                  theme.pattern(static_cast<LayerSplit>(b)).style());
      for (const QColor& ground : {theme.ground, theme.groundRaised, theme.groundSunken})
        for (const QColor& text : {theme.text, theme.textQuiet}) QVERIFY(contrast(text, ground) >= 4.5);
    }
  }
};

int main(int argc, char** argv) { return canvasTestMain<CanvasModel>(argc, argv); }
#include "tst_canvas_model.moc"
