// The panels' models: consistent for any view, and saying what the session holds.
#include <QAbstractItemModelTester>
#include <QtTest>

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

void TestPanelModels::modulesFoldEqualNeighboursIntoStacks() {
  ModulesModel model;
  Tester tester(&model, kFatal);
  model.setGraph(testing::smallGraph());
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
  const auto graph = testing::smallGraph();
  model.setGraph(graph);
  const auto tally = [&] { return model.index(0, ModulesModel::Split).data(kSplitTallyRole).value<SplitTally>(); };
  QCOMPARE(tally().work.of(LayerForm::Open).layers, 8u);
  auto state = std::make_shared<StepState>();
  state->ranks = 2;
  state->placements.resize(graph->values.size());
  state->strategies.resize(graph->nodes.size());
  state->placements[graph->findValue("linear_0").index()] = rules::Placement::split(1);
  state->placements[graph->findValue("relu_0").index()] = rules::Placement::split(1);
  state->placements[graph->findValue("linear_1").index()] = rules::Placement::replicated();
  state->strategies[graph->value(graph->findValue("linear_0")).producer.index()] = rules::Strategy::Column;
  state->strategies[graph->value(graph->findValue("linear_1")).producer.index()] = rules::Strategy::Row;
  model.setState(state);
  QCOMPARE(tally().values[std::size_t(Tint::Dim1)], 2u);
  QCOMPARE(tally().values[std::size_t(Tint::Replicated)], 1u);
  QCOMPARE(tally().values[std::size_t(Tint::Unassigned)], 9u);
  // The row layer's result is whole; the layer is split.
  QCOMPARE(tally().work.of(LayerForm::Column).layers, 1u);
  QCOMPARE(tally().work.of(LayerForm::Row).layers, 1u);
  QCOMPARE(tally().work.of(LayerForm::Open).layers, 6u);
}

void TestPanelModels::nodesSayWhatTheStepSays() {
  NodesModel model;
  Tester tester(&model, kFatal);
  const auto graph = testing::smallGraph();
  model.setGraph(graph);
  QCOMPARE(model.rowCount(), int(graph->nodes.size()));
  auto state = std::make_shared<StepState>();
  state->placements.resize(graph->values.size());
  state->strategies.resize(graph->nodes.size());
  const ValueId value = graph->findValue("linear_0");
  const int row = int(graph->value(value).producer.index());
  state->placements[value.index()] = rules::Placement::split(1);
  state->strategies[std::size_t(row)] = rules::Strategy::Column;
  model.setState(state);
  QCOMPARE(model.index(row, NodesModel::StrategyColumn).data().toString(), QStringLiteral("column"));
  QCOMPARE(model.index(row, NodesModel::Shape).data().toString(), QStringLiteral("2×16 f32"));
  QVERIFY(model.index(row, NodesModel::PlacementColumn).data(kPlacementRole).value<MaybePlacement>() ==
          rules::Placement::split(1));
}

void TestPanelModels::stepsTellOnlyWhatTheyChange() {
  const auto graph = testing::smallGraph();
  NodesModel nodes;
  ModulesModel modules;
  nodes.setGraph(graph);
  modules.setGraph(graph);
  auto before = std::make_shared<StepState>();
  before->placements.resize(graph->values.size());
  before->strategies.resize(graph->nodes.size());
  before->placements[graph->findValue("linear_3").index()] = rules::Placement::replicated();
  nodes.setState(before);
  modules.setState(before);
  int rows = 0, items = 0;
  connect(&nodes, &QAbstractItemModel::dataChanged, this,
          [&](const QModelIndex& first, const QModelIndex& last) { rows += last.row() - first.row() + 1; });
  connect(&modules, &QAbstractItemModel::dataChanged, this,
          [&](const QModelIndex& first, const QModelIndex& last) { items += last.row() - first.row() + 1; });
  auto after = std::make_shared<StepState>(*before);
  nodes.setState(after);
  modules.setState(after);
  QCOMPARE(rows + items, 0);
  after = std::make_shared<StepState>(*before);
  after->placements[graph->findValue("linear_0").index()] = rules::Placement::split(1);
  nodes.setState(after);
  modules.setState(after);
  QCOMPARE(rows, 1);
  const int depth = 6;  // the model, model, layers, the stack, 0, up
  QCOMPARE(items, depth);
  nodes.setState(nullptr);
  QCOMPARE(rows, 3);  // both are unassigned again
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
  QTest::newRow("unknown value") << "nonsense"
                                 << "!nonsense";
  QTest::newRow("bad placement") << "placement:S("
                                 << "!placement";
  QTest::newRow("nothing") << "  "
                           << "!something to wait for";
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
  model.setGraph(testing::smallGraph());
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
