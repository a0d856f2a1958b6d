// Colours by amounts: sums, scales, text, and readability in light, in dark and in grey.
#include "tests/views/graph/canvas_support.h"
#include "views/graph/model/graph_model_builder.h"
#include "views/graph/model/heat_field.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::test;

namespace {
/// Each call costs its number; other costs are unknown.
HeatAmounts countingAmounts(const graph::Graph& graph) {
  HeatAmounts amounts(graph.nodes.size());
  for (const auto node : idRange<graph::NodeId>(graph.nodes.size()))
    if (graph.node(node).kind == graph::NodeKind::Call) amounts[node.index()] = static_cast<std::int64_t>(node.raw());
  return amounts;
}
}  // namespace

class CanvasHeat : public QObject {
  Q_OBJECT
  /// Calls that are not folded into a module.
  std::vector<NodeId> shownCalls(const GraphModel& model) const {
    std::vector<NodeId> calls;
    for (const auto node : idRange<NodeId>(m_graph->nodes.size()))
      if (m_graph->node(node).kind == graph::NodeKind::Call && model.shownNode(node) == node) calls.push_back(node);
    return calls;
  }

 private slots:
  void init() { m_graph = cleave::test::llamaGraph({.layers = 3}); }

  void aModuleIsTheSumOfWhatItHolds() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    const HeatAmounts amounts = countingAmounts(*m_graph);
    const HeatField heat(model, ColorBy::Time, amounts);
    std::int64_t all = 0;
    for (const auto node : idRange<graph::NodeId>(amounts.size()))
      if (amounts[node.index()] && model.shownNode(node).isValid()) all += *amounts[node.index()];
    QCOMPARE(heat.of(model.root(), model.root()), std::optional(all));
    QVERIFY(heat.isSum());
    QVERIFY2(heat.moduleText(5'000'000'000).startsWith(QStringLiteral("Σ ")), qPrintable(heat.moduleText(5)));
  }

  void regretOfAModuleIsItsMost() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    const HeatAmounts amounts = countingAmounts(*m_graph);
    const HeatField heat(model, ColorBy::Regret, amounts);
    double most = 0;
    for (const auto node : idRange<graph::NodeId>(amounts.size()))
      if (amounts[node.index()] && model.shownNode(node).isValid()) most = std::max(most, *amounts[node.index()]);
    QCOMPARE(heat.of(model.root(), model.root()), std::optional(most));
    QVERIFY(heat.moduleText(most).startsWith(QStringLiteral("max +")));
  }

  void whatHasNoRegretSaysWhy() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    HeatAmounts amounts(m_graph->nodes.size());
    HeatGaps gaps(m_graph->nodes.size());
    const std::vector<NodeId> calls = shownCalls(model);
    amounts[calls[0].index()] = -13'100'000'000;
    gaps[calls[1].index()] = HeatGap::OverBudget;
    gaps[calls[2].index()] = HeatGap::NotKnown;
    const HeatField heat(model, ColorBy::Regret, amounts, gaps);
    QVERIFY(heat.hasNegative());
    QCOMPARE(heat.label(calls[0]), QStringLiteral("−13.1 µs"));
    QVERIFY(heat.tip(calls[0]).contains(QStringLiteral("slack")));
    QCOMPARE(heat.label(calls[1]), QStringLiteral("over budget"));
    QVERIFY(heat.tip(calls[1]).contains(QStringLiteral("memory budget")));
    QCOMPARE(heat.label(calls[2]), QStringLiteral("unknown"));
    QVERIFY(heat.tip(calls[2]).contains(QStringLiteral("limit")));
    QVERIFY(heat.label(calls[3]).isEmpty() && heat.tip(calls[3]).isEmpty());
    QCOMPARE(heat.text(0), QStringLiteral("±0"));
    QVERIFY(!HeatField(model, ColorBy::Regret, amounts).label(calls[2]).contains(QStringLiteral("known")));
  }

  /// Fractions of the tolerance: three classes in words and colours. A module shows its maximum.
  void errorsAreEqualWithinOrBeyond() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    HeatAmounts amounts(m_graph->nodes.size());
    HeatGaps gaps(m_graph->nodes.size());
    const std::vector<NodeId> calls = shownCalls(model);
    const double parts[] = {0, 0.034, 1, 12, HUGE_VAL};
    for (std::size_t i = 0; i < std::size(parts); ++i) amounts[calls[i].index()] = parts[i];
    gaps[calls[5].index()] = HeatGap::NotCompared;
    const HeatField heat(model, ColorBy::Error, amounts, gaps);
    QVERIFY(!heat.isSum());
    const QString labels[] = {"=", "3.4 %", "100 %", "12×", "≠", "not compared"};
    for (std::size_t i = 0; i < std::size(labels); ++i) QCOMPARE(heat.label(calls[i]), labels[i]);
    QVERIFY2(heat.tip(calls[3]).contains(QStringLiteral("beyond, 12×")), qPrintable(heat.tip(calls[3])));
    QVERIFY2(heat.tip(calls[5]).contains(QStringLiteral("only one of the two runs")), qPrintable(heat.tip(calls[5])));
    QVERIFY(std::isinf(heat.of(model.root(), model.root()).value_or(0)));
    for (const Theme& theme : {Theme::light(), Theme::darkTheme()}) {
      const QColor equal = heat.color(theme, 0), within = heat.color(theme, 0.5), beyond = heat.color(theme, 2);
      QVERIFY(equal != within && within != beyond && beyond != equal);
      for (const QColor& color : {equal, within, beyond}) QVERIFY(contrast(theme.textOn(color), color) >= 4.5);
      QCOMPARE(heat.color(theme, std::nullopt), theme.ground);
    }
  }

  void aStackIsAllItsModules() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    const HeatField heat(model, ColorBy::Memory, countingAmounts(*m_graph));
    std::vector<ModuleId> layers;
    for (const auto id : idRange<ModuleId>(model.moduleCount()))
      if (model.module(id).listIndex >= 0 && model.module(id).scope.isValid()) layers.push_back(id);
    QCOMPARE(layers.size(), std::size_t(3));
    std::sort(layers.begin(), layers.end(),
              [&](ModuleId a, ModuleId b) { return model.module(a).listIndex < model.module(b).listIndex; });
    std::int64_t sum = 0;
    for (const ModuleId id : layers) sum += heat.of(id, id).value_or(0);
    QVERIFY(sum > 0);
    QCOMPARE(heat.of(layers.front(), layers.back()).value_or(-1), sum);
  }

  void theScaleGrowsWithTheAmount() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    const HeatField heat(model, ColorBy::Traffic, countingAmounts(*m_graph));
    QCOMPARE(heat.fraction(0), 0.0);
    double last = 0;
    for (std::int64_t amount = heat.least(); amount <= heat.most(); amount = amount * 5 / 4 + 1) {
      const double at = heat.fraction(amount);
      QVERIFY(at > 0 && at >= last && at <= 1);
      last = at;
    }
    QCOMPARE(heat.fraction(heat.most()), 1.0);
    QVERIFY(heat.amountAt(0) <= heat.amountAt(0.5) && heat.amountAt(0.5) <= heat.amountAt(1));
  }

  void nothingKnownIsNoScale() {
    const GraphModel model = makeGraphModel(treeOf(m_graph));
    const HeatField heat(model, ColorBy::Regret, {});
    QVERIFY(heat.isEmpty());
    QVERIFY(!heat.of(model.root(), model.root()));
    QCOMPARE(heat.fraction(7), 0.0);
  }

  void coloursAreOrderedByLightnessAndCarryText_data() {
    QTest::addColumn<bool>("isDark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
  void coloursAreOrderedByLightnessAndCarryText() {
    QFETCH(bool, isDark);
    const Theme theme = isDark ? Theme::darkTheme() : Theme::light();
    double last = 0;
    for (int step = 1; step <= 50; ++step) {
      const QColor color = theme.heat(step / 50.0);
      QVERIFY(contrast(theme.textOn(color), color) >= 4.5);
      const double away = contrast(color, isDark ? QColor(Qt::black) : QColor(Qt::white));
      QVERIFY2(away > last, qPrintable(QString::number(step)));
      last = away;
    }
    QCOMPARE(theme.heat(0), theme.ground);
    QVERIFY(contrast(theme.changed, theme.ground) >= 3);
  }

  void theCanvasShowsAmountsAndGoesBack() {
    GraphView view;
    view.resize(1000, 700);
    view.show();
    ShownGraph shown(view, m_graph);
    shown.place({tensorParallel(*m_graph), {}, 1});
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    const QImage byAxis = pictureOf(view);
    view.setColorBy(ColorBy::Time, countingAmounts(*m_graph));
    QVERIFY(view.heat() && !view.heat()->isEmpty());
    const QImage byTime = pictureOf(view);
    QVERIFY(byTime != byAxis);
    view.setColorBy(ColorBy::Regret, {}, QStringLiteral("unknown"));
    QVERIFY(view.heat()->isEmpty());
    view.setColorBy(ColorBy::Axis, {});
    QVERIFY(!view.heat());
    QCOMPARE(pictureOf(view), byAxis);
    view.setColorBy(ColorBy::Time, countingAmounts(*m_graph));
    view.setHelpersFolded(false);  // makes a new model; the amounts stay
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    QVERIFY(view.heat() && !view.heat()->isEmpty());
  }

  void changedNodesAreOutlined() {
    GraphView view;
    view.resize(1000, 700);
    const ShownGraph shown(view, m_graph);
    QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);
    const QImage before = pictureOf(view);
    view.setChangedNodes({m_graph->value(m_graph->outputs.front().value).producer});
    QVERIFY(pictureOf(view) != before);
    view.setChangedNodes({});
    QCOMPARE(pictureOf(view), before);
  }

 private:
  std::shared_ptr<const graph::Graph> m_graph;
};

int main(int argc, char** argv) { return canvasTestMain<CanvasHeat>(argc, argv); }

#include "tst_canvas_heat.moc"
