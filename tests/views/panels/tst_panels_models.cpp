// The panels' models: consistent for any view, and equal to the session's data.
#include <QAbstractItemModelTester>
#include <QtTest>
#include <map>

#include "solve/trace/recorder.h"
#include "tests/support/panel_fixture.h"
#include "views/base/text.h"
#include "views/panels/breakpoints_model.h"
#include "views/panels/event_log.h"
#include "views/panels/layers_model.h"
#include "views/panels/modules_model.h"
#include "views/panels/nodes_model.h"
#include "views/widgets/tables.h"

using namespace cleave;
using namespace cleave::views;

class TestPanelModels : public QObject {
  Q_OBJECT
 private slots:
  void modulesFoldEqualNeighboursIntoStacks();
  void modulesCountPlacementsUpwards();
  void nodesSayWhatTheStepSays();
  void stepsTellOnlyWhatTheyChange();
  void eventLogReadsAnyRowLazily();
  void eventLogGrowsWithTheTrace();
  void layersShowLocalShapes();
  void breakpointsReadTheirTextForms_data();
  void breakpointsReadTheirTextForms();
  void filterNeedsEveryWord();
};

using Tester = QAbstractItemModelTester;
constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::QtTest;

namespace {

std::shared_ptr<SplitCounts> smallCounts() {
  return std::make_shared<SplitCounts>(std::make_shared<const ModuleTree>(testing::smallGraph()));
}

/// Placements and strategies by id. Others are not decided.
struct Decided {
  std::map<ValueId, rules::Placement> placements;
  std::map<NodeId, rules::Strategy> strategies;
  SplitSource source() const {
    const auto find = [](const auto& map, auto id) {
      const auto found = map.find(id);
      return found == map.end() ? std::nullopt : std::optional(found->second);
    };
    return {[=, this](ValueId v) { return find(placements, v); }, [=, this](NodeId n) { return find(strategies, n); },
            2};
  }
};

}  // namespace

void TestPanelModels::modulesFoldEqualNeighboursIntoStacks() {
  ModulesModel model;
  Tester tester(&model, kFatal);
  model.setSplits(smallCounts());
  const QModelIndex root = model.index(0, 0);
  const QModelIndex wrapper = model.index(0, 0, root);
  const QModelIndex layers = model.index(0, 0, wrapper);
  QCOMPARE(model.data(layers, Qt::DisplayRole).toString(), QStringLiteral("layers"));
  QCOMPARE(model.rowCount(layers), 1);
  const QModelIndex stack = model.index(0, 0, layers);
  QCOMPARE(model.data(stack, Qt::DisplayRole).toString(), QStringLiteral("0 – 3  ×4"));
  QCOMPARE(model.rowCount(stack), 4);
  QCOMPARE(model.data(stack.siblingAtColumn(ModulesModel::Operators), Qt::DisplayRole).toInt(), 12);
  const auto graph = testing::smallGraph();
  const QModelIndex found = model.indexOf(graph->findScope("model.layers.2.up"));
  QVERIFY(found.isValid());
  QVERIFY(targetOf(found) == std::optional<Target>(graph->findScope("model.layers.2.up")));
  QCOMPARE(model.parent(model.parent(found)), stack);
}

void TestPanelModels::modulesCountPlacementsUpwards() {
  ModulesModel model;
  Tester tester(&model, kFatal);
  const auto counts = smallCounts();
  const graph::Graph& graph = counts->graph();
  model.setSplits(counts);
  const auto tally = [&] { return model.index(0, ModulesModel::Split).data(kSplitTallyRole).value<SplitTally>(); };
  QCOMPARE(tally().work.of(LayerSplit::Open).layers, 8u);
  Decided decided;
  decided.placements[graph.findValue("linear_0")] = rules::Placement::split(1);
  decided.placements[graph.findValue("relu_0")] = rules::Placement::split(1);
  decided.placements[graph.findValue("linear_1")] = rules::Placement::replicated();
  decided.strategies[graph.value(graph.findValue("linear_0")).producer] = rules::Strategy::Column;
  decided.strategies[graph.value(graph.findValue("linear_1")).producer] = rules::Strategy::Row;
  counts->reset(decided.source());
  QCOMPARE(tally().values[std::size_t(Tint::Dim1)], 2u);
  QCOMPARE(tally().values[std::size_t(Tint::Replicated)], 1u);
  QCOMPARE(tally().values[std::size_t(Tint::Unassigned)], 9u);
  // The row layer's result is replicated; the layer is split.
  QCOMPARE(tally().work.of(LayerSplit::Column).layers, 1u);
  QCOMPARE(tally().work.of(LayerSplit::Row).layers, 1u);
  QCOMPARE(tally().work.of(LayerSplit::Open).layers, 6u);
}

void TestPanelModels::nodesSayWhatTheStepSays() {
  NodesModel model;
  Tester tester(&model, kFatal);
  const auto counts = smallCounts();
  const graph::Graph& graph = counts->graph();
  model.setSplits(counts);
  QCOMPARE(model.rowCount(), int(graph.nodes.size()));
  const ValueId value = graph.findValue("linear_0");
  const NodeId node = graph.value(value).producer;
  Decided decided;
  decided.placements[value] = rules::Placement::split(1);
  decided.strategies[node] = rules::Strategy::Column;
  counts->reset(decided.source());
  const int row = int(node.index());
  QCOMPARE(model.index(row, NodesModel::StrategyColumn).data().toString(), QStringLiteral("column"));
  QCOMPARE(model.index(row, NodesModel::Shape).data().toString(), QStringLiteral("2×16 f32"));
  QVERIFY(model.index(row, NodesModel::PlacementColumn).data(kPlacementRole).value<MaybePlacement>() ==
          rules::Placement::split(1));
}

void TestPanelModels::stepsTellOnlyWhatTheyChange() {
  const auto counts = smallCounts();
  const ValueId value = counts->graph().findValue("linear_0");
  NodesModel nodes;
  ModulesModel modules;
  nodes.setSplits(counts);
  modules.setSplits(counts);
  MaybePlacement placement;
  counts->reset({[&](ValueId v) { return v == value ? placement : std::nullopt; }, {}, 2});
  int rows = 0, items = 0;
  connect(&nodes, &QAbstractItemModel::dataChanged, this,
          [&](const QModelIndex& first, const QModelIndex& last) { rows += last.row() - first.row() + 1; });
  connect(&modules, &QAbstractItemModel::dataChanged, this,
          [&](const QModelIndex& first, const QModelIndex& last) { items += last.row() - first.row() + 1; });
  const auto step = [&] {
    const std::vector<NodeId> changed = counts->update(std::vector{counts->graph().value(value).producer});
    nodes.reportChanges(changed);
    modules.reportChanges(changed);
  };
  step();
  QCOMPARE(rows + items, 0);
  placement = rules::Placement::split(1);
  step();
  QCOMPARE(rows, 1);
  const int depth = 6;  // the model, model, layers, the stack, 0, up
  QCOMPARE(items, depth);
  placement.reset();
  step();
  QCOMPARE(rows, 2);
}

void TestPanelModels::eventLogReadsAnyRowLazily() {
  EventLogModel model;
  Tester tester(&model, kFatal);
  const auto trace = testing::smallTrace();
  model.setTrace(trace);
  QCOMPARE(model.rowCount(), int(trace->size()));
  for (int row = model.rowCount() - 1; row >= 0; --row) {
    solve::Event event;
    QCOMPARE(trace->read(solve::StepId(row), {&event, 1}), std::size_t(1));
    QVERIFY(model.eventAt(row) == event);
    QVERIFY(!model.index(row, EventLogModel::What).data().toString().isEmpty());
  }
  QCOMPARE(model.index(model.rowCount() - 1, EventLogModel::Kind).data().toString(), QStringLiteral("solution"));
}

void TestPanelModels::eventLogGrowsWithTheTrace() {
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = testing::smallGraph();
  solve::TraceRecorder recorder(problem);
  EventLogModel model;
  Tester tester(&model, kFatal);
  model.setTrace(recorder.trace());
  QCOMPARE(model.rowCount(), 0);
  for (int i = 0; i < 700; ++i) {
    recorder.onEvent({solve::EventType::Visit, 0, 0, std::uint32_t(i % 3), 1, 0});
    if (i % 97 == 0) model.grow();
  }
  model.grow();
  QCOMPARE(model.rowCount(), 700);
  QCOMPARE(model.eventAt(699).node, 699u % 3);
}

void TestPanelModels::layersShowLocalShapes() {
  auto plan = std::make_shared<plan::Plan>();
  plan::LayerPlan layer;
  layer.name = "model.layers.0.up";
  layer.strategy = rules::Strategy::Column;
  layer.axis = "column";
  layer.weight = "model.layers.0.up.weight";
  layer.node = graph::NodeId(3);
  plan->layers.push_back(layer);
  program::ParameterShards weight;
  weight.name = layer.weight;
  weight.type = {graph::DType::Float32, {16, 8}};
  weight.localShape = {8, 8};
  plan->parameters.push_back(weight);
  LayersModel model;
  Tester tester(&model, kFatal);
  model.setPlan(plan);
  QCOMPARE(model.index(0, LayersModel::Weight).data().toString(), QStringLiteral("16×8"));
  QCOMPARE(model.index(0, LayersModel::Local).data().toString(), QStringLiteral("8×8"));
  QVERIFY(targetOf(model.index(0, LayersModel::Name)) == std::optional<Target>(NodeId(3)));
  QSet<QString> said;  // all columns differ
  for (int column = 0; column < model.columnCount(); ++column) {
    const QString text = model.index(0, column).data().toString();
    QVERIFY2(text.isEmpty() || !said.contains(text), qPrintable(text));
    said << text;
  }
  model.setPlan(nullptr);
  QCOMPARE(model.rowCount(), 0);
}

void TestPanelModels::breakpointsReadTheirTextForms_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("said");
  QTest::newRow("conflict") << "conflict"
                            << "a conflict";
  QTest::newRow("deep") << "backtrack>8"
                        << "a backtrack over 9 decisions or more";
  QTest::newRow("node") << "linear_1"
                        << "any event at linear_1";
  QTest::newRow("scope and count") << "conflict in:model.layers.1 x3"
                                   << "a conflict in model.layers.1, after 2 hits";
  QTest::newRow("placement") << "op:linear placement:S(1)"
                             << "an assignment giving S(1) of linear";
  QTest::newRow("part of a path") << "conflict in:layers.1"
                                  << "a conflict in model.layers.1";
  QTest::newRow("unknown module") << "in:model.layers.30"
                                  << "!no module \"model.layers.30\"";
  QTest::newRow("modules of one name") << "in:up"
                                       << "!Write the path of one, such as in:model.layers.0.up";
  QTest::newRow("unknown operator") << "op:nonsense"
                                    << "!no operator \"nonsense\"";
  QTest::newRow("two events") << "conflict placement:S(1)"
                              << "!a second kind of event";
  QTest::newRow("two values") << "linear_0 linear_1"
                              << "!a second value";
  QTest::newRow("unknown value") << "nonsense"
                                 << "!nonsense";
  QTest::newRow("bad placement") << "placement:S("
                                 << "!placement";
  QTest::newRow("nothing") << "  "
                           << "!The breakpoint is empty";
}

void TestPanelModels::breakpointsReadTheirTextForms() {
  QFETCH(QString, text);
  QFETCH(QString, said);
  const auto graph = testing::smallGraph();
  const auto breakpoint = parseBreakpoint(text, *graph);
  if (said.startsWith(QLatin1Char('!'))) {
    QVERIFY(!breakpoint);
    QVERIFY2(toQ(breakpoint.error().message).contains(said.mid(1)), breakpoint.error().message.c_str());
  } else {
    QVERIFY2(breakpoint.has_value(), breakpoint ? "" : breakpoint.error().message.c_str());
    QCOMPARE(describe(*breakpoint, graph.get()), said);
  }
}

void TestPanelModels::filterNeedsEveryWord() {
  NodesModel model;
  model.setSplits(smallCounts());
  WordFilterModel filter;
  Tester tester(&filter, kFatal);
  filter.setSourceModel(&model);
  filter.setWords(QStringLiteral("linear layers.2"));
  QCOMPARE(filter.rowCount(), 2);
  filter.setWords(QStringLiteral("linear nowhere"));
  QCOMPARE(filter.rowCount(), 0);
}

QTEST_MAIN(TestPanelModels)
#include "tst_panels_models.moc"
