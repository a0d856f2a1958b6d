// Two plans side by side: grouping, texts of the change, and the two actions.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QTextBrowser>
#include <QtTest>

#include "tests/support/panel_fixture.h"
#include "tests/support/patience.h"
#include "views/base/text.h"
#include "views/panels/diff_model.h"
#include "views/panels/diff_panel.h"
#include "views/widgets/chip_delegate.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

namespace {
const TextColors kColors{"#555555", "#008000", "#d00000", "#806000"};

/// All four up layers became row; one down layer became column; the results of the up layers have new placements.
plan::PlanDiff someDiff(const graph::Graph& graph) {
  plan::PlanDiff diff;
  diff.ranksBefore = diff.ranksAfter = 2;
  for (int i = 0; i < 4; ++i) {
    const ValueId result = graph.findValue("linear_" + std::to_string(2 * i));
    diff.layers.push_back({"model.layers." + std::to_string(i) + ".up", graph.value(result).producer,
                           rules::Strategy::Column, rules::Strategy::Row, "first", "its `input` is split"});
    diff.values.push_back({graph.value(result).name, result, rules::Placement::split(1), rules::Placement()});
  }
  diff.layers.push_back({"model.layers.0.down", graph.value(graph.findValue("linear_1")).producer, rules::Strategy::Row,
                         rules::Strategy::Column, "", ""});
  diff.splitLayers = {8, 6};
  diff.layerCount = {8, 8};
  diff.splitFlops = {0.5, 0.9};
  diff.femtoseconds = {2'000'000'000'000, 3'000'000'000'000};
  diff.rankBytes = {900 << 20, 700 << 20};
  diff.collectives[rules::CollectiveKind::AllReduce] = {{8, 1 << 20}, {8, 1 << 20}};
  diff.collectives[rules::CollectiveKind::AllGather] = {{0, 0}, {2, 1 << 10}};
  return diff;
}
}  // namespace

class TestDiffPanel : public QObject {
  Q_OBJECT
 private slots:
  void equalChangesOfRepeatedLayersAreOneRow();
  void modelIsConsistent();
  void figuresSayTheDirection();
  void panelKeepsAndDropsBranches();
};

void TestDiffPanel::equalChangesOfRepeatedLayersAreOneRow() {
  const auto graph = testing::smallGraph();
  const auto rows = diffRows(someDiff(*graph), *graph);
  QCOMPARE(rows.size(), std::size_t(3));
  QCOMPARE(rows[0].name, QStringLiteral("model.layers.*.up"));
  QCOMPARE(rows[0].members.size(), qsizetype(4));
  QCOMPARE(rows[0].node, graph->value(graph->findValue("linear_0")).producer);
  QCOMPARE(rows[0].why, QStringLiteral("its input is split"));
  QCOMPARE(rows[1].name, QStringLiteral("model.layers.0.down"));  // a single member has its own name
  QVERIFY(!rows[2].isLayer);
  QCOMPARE(rows[2].name, QStringLiteral("model.layers.*.up · linear"));
  QCOMPARE(rows[2].members.size(), qsizetype(4));

  plan::PlanDiff other = someDiff(*graph);
  other.layers[2].after = rules::Strategy::Replicated;  // one of the four differs and gets its own row
  const auto apart = diffRows(other, *graph);
  QCOMPARE(apart.size(), std::size_t(4));
  QCOMPARE(apart[0].members.size(), qsizetype(3));
  QCOMPARE(apart[1].name, QStringLiteral("model.layers.2.up"));
}

void TestDiffPanel::modelIsConsistent() {
  const auto graph = testing::smallGraph();
  DiffModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  model.setRows(diffRows(someDiff(*graph), *graph));
  QCOMPARE(model.rowCount(), 3);
  const auto at = [&](int row, int column, int role = Qt::DisplayRole) { return model.index(row, column).data(role); };
  QCOMPARE(at(0, DiffModel::Count).toString(), QStringLiteral("×4"));
  QCOMPARE(at(0, DiffModel::Before).toString(), QStringLiteral("column"));
  QCOMPARE(at(0, DiffModel::After).toString(), QStringLiteral("row"));
  QVERIFY(!at(0, DiffModel::Before, kPlacementRole).isValid());
  QVERIFY(at(2, DiffModel::Before, kPlacementRole).value<MaybePlacement>() == rules::Placement::split(1));
  QVERIFY(at(0, DiffModel::Name, Qt::ToolTipRole).toString().contains(QStringLiteral("model.layers.3.up")));
  QVERIFY(std::holds_alternative<NodeId>(at(0, DiffModel::Name, kTargetRole).value<Target>()));
  model.setRows({});
  QCOMPARE(model.rowCount(), 0);
}

void TestDiffPanel::figuresSayTheDirection() {
  const auto graph = testing::smallGraph();
  const QString html = diffFigures(someDiff(*graph), kColors);
  const auto lineOf = [&](const QString& name) {
    const QStringList rows = html.split(QStringLiteral("<tr>"));
    for (const QString& row : rows)
      if (row.contains(name)) return QString(row).replace(QStringLiteral("&nbsp;"), QStringLiteral(" "));
    return QString();
  };
  QVERIFY(lineOf(QStringLiteral("layers split")).contains(QStringLiteral("−2 ▼")));
  QVERIFY(lineOf(QStringLiteral("layers split")).contains(kColors.conflict));
  QVERIFY2(lineOf(QStringLiteral("FLOPs split")).contains(QStringLiteral("+40.0 points ▲")), qPrintable(html));
  QVERIFY(lineOf(QStringLiteral("weights split")).contains(QStringLiteral("same")));
  QVERIFY(lineOf(QStringLiteral("time per step")).contains(kColors.conflict));
  QVERIFY(lineOf(QStringLiteral("bytes per rank")).contains(QStringLiteral("−200 MiB ▼")));
  QVERIFY(lineOf(QStringLiteral("bytes per rank")).contains(kColors.good));
  QVERIFY(lineOf(QStringLiteral("all-reduce")).contains(QStringLiteral("same")));
  QVERIFY(lineOf(QStringLiteral("all-gather")).contains(QStringLiteral("+2")));
  QVERIFY(!html.contains(QStringLiteral("ranks")));  // equal in both plans
}

void TestDiffPanel::panelKeepsAndDropsBranches() {
  Session session;
  DiffPanel panel(session.opened(), session.settings(), session.plans(), session.jobs(), session.selection());
  panel.resize(330, 600);
  panel.show();
  const auto button = [&](const QString& text) {
    QPushButton* found = nullptr;
    for (QPushButton* candidate : panel.findChildren<QPushButton*>())
      if (candidate->isVisible() && candidate->text() == text) found = candidate;
    return found;
  };
  QVERIFY(!button(QStringLiteral("Keep B")));
  session.settings().setEngine(solve::Engine::Learning);  // with the full candidate set a layer may stay replicated
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
  const auto first = session.plans().plan();

  QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")).has_value());
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().diff() && button(QStringLiteral("Keep B")), kPatience);
  for (const char* name : {"A", "B", "Keep B", "Drop B"}) {
    const QPushButton* shown = button(QLatin1String(name));
    QVERIFY2(shown && shown->width() >= shown->fontMetrics().horizontalAdvance(shown->text()), name);
  }
  const auto labels = panel.findChildren<QLabel*>();
  QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
    return label->isVisible() && label->text().contains(QStringLiteral("lm_head=replicated"));
  }));
  auto* table = panel.findChild<QTableView*>();
  QTRY_VERIFY_WITH_TIMEOUT(table->isVisible() && table->model()->rowCount() > 0, kPatience);
  table->setFocus();
  table->selectRow(0);
  QVERIFY(session.selection().focus().node.isValid());

  button(QStringLiteral("A"))->click();
  QCOMPARE(session.plans().plan(), first);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && button(QStringLiteral("Drop B"))->isEnabled(), kPatience);
  button(QStringLiteral("Drop B"))->click();
  QCOMPARE(session.plans().branches().size(), std::size_t(1));
  QTRY_VERIFY_WITH_TIMEOUT(!button(QStringLiteral("Keep B")), kPatience);
  QCOMPARE(session.plans().plan(), first);

  QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")).has_value());
  QTRY_VERIFY_WITH_TIMEOUT(
      session.isIdle() && button(QStringLiteral("Keep B")) && button(QStringLiteral("Keep B"))->isEnabled(), kPatience);
  button(QStringLiteral("Keep B"))->click();
  QCOMPARE(session.plans().branches().size(), std::size_t(1));
  QVERIFY(session.plans().plan() != first);
}

QTEST_MAIN(TestDiffPanel)
#include "tst_diff_panel.moc"
