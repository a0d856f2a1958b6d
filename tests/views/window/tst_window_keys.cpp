// Keys reach the expected widget: the window's shortcuts in text fields, Home and End in tables, and each panel has its
// own.
#include <QComboBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTabBar>
#include <QTableView>
#include <QTreeView>

#include "tests/support/rows.h"
#include "tests/views/window/window_fixture.h"
#include "views/panels/search_timeline.h"
#include "views/run/rank_bars.h"
#include "views/run/run_view.h"
#include "views/widgets/tables.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

template <class Widget>
Widget* named(QWidget& parent, const char* accessibleName) {
  for (Widget* widget : parent.findChildren<Widget*>())
    if (widget->accessibleName() == QLatin1String(accessibleName)) return widget;
  return nullptr;
}

TablePanel* tablePanel(MainWindow& window, const char* filter) {
  auto* field = named<QLineEdit>(window, filter);
  return field ? qobject_cast<TablePanel*>(field->parentWidget()) : nullptr;
}

}  // namespace

class TestWindowKeys : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void everyTabStopShowsTheFocus_data() {
    const cleave::test::Rows<bool> row("isDark");
    row("light", false);
    row("dark", true);
  }
  void everyTabStopShowsTheFocus() {
    QFETCH(bool, isDark);
    SessionWindow window;
    window.setDarkTheme(isDark);
    openModel(window);
    window.activateWindow();
    const QColor accent = Theme::of(window.palette()).accent;
    QSet<QWidget*> seen;
    for (int i = 0; i < 200; ++i) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, Qt::Key_Tab);
      QWidget* at = QApplication::focusWidget();
      QVERIFY(at);
      if (at->window() != &window) continue;
      const QByteArray name = QByteArray(at->metaObject()->className()) + ' ' + at->accessibleName().toUtf8();
      const auto ring = [&] { return window.findChild<QWidget*>(QStringLiteral("focus-ring")); };
      QTRY_VERIFY2(ring() && ring()->isVisible(), name);
      const QImage picture = window.grab(ring()->geometry()).toImage();
      QVERIFY2(!picture.isNull() && picture.pixelColor(picture.width() / 2, 0) == accent, name);
      QVERIFY2(QRect(at->mapTo(&window, QPoint()), at->size()).contains(ring()->geometry()), name);
      seen.insert(at);
    }
    QVERIFY2(seen.size() > 20, qPrintable(QString::number(seen.size())));
    QTest::mouseClick(window.findChild<QLineEdit*>(), Qt::LeftButton);
    QVERIFY(!window.findChild<QWidget*>(QStringLiteral("focus-ring"))->isVisible());
    window.setDarkTheme(false);
  }

  void textFieldsLeaveTheWindowItsShortcuts_data() {
    QTest::addColumn<QString>("field");
    QTest::addColumn<int>("key");
    QTest::addColumn<QString>("action");
    for (const char* field : {"Search the graph", "Filter modules", "New breakpoint"}) {
      QTest::addRow("%s: Ctrl+E", field) << QString::fromLatin1(field) << int(Qt::Key_E) << "export-plan";
      QTest::addRow("%s: Ctrl+P", field) << QString::fromLatin1(field) << int(Qt::Key_P) << "add-pin";
      QTest::addRow("%s: Ctrl+W", field) << QString::fromLatin1(field) << int(Qt::Key_W) << "world-sizes";
    }
  }
  void textFieldsLeaveTheWindowItsShortcuts() {
    QFETCH(QString, field);
    QFETCH(int, key);
    QFETCH(QString, action);
    SessionWindow window;
    openModel(window);
    window.raiseDock(QStringLiteral("Breakpoints"));
    auto* line = named<QLineEdit>(window, qPrintable(field));
    QVERIFY(line);
    line->setFocus();
    auto* entry = window.findChild<QAction*>(action);
    entry->disconnect(&window);  // no dialogs here
    QSignalSpy triggered(entry, &QAction::triggered);
    QTest::keyClick(line, Qt::Key(key), Qt::ControlModifier);
    QCOMPARE(triggered.count(), 1);
  }

  /// The focused dock is hidden by another one: no text field gets the focus, and keys still work.
  void aHiddenDockLeavesTheFocusToTheGraph() {
    SessionWindow window;
    openModel(window);
    window.activateWindow();
    window.raiseDock(QStringLiteral("Layers"));
    auto* table = tablePanel(window, "Filter layers")->findChild<QTableView*>();
    QVERIFY(table);
    table->setFocus();
    QTRY_COMPARE_WITH_TIMEOUT(QApplication::focusWidget(), table, kPatience);
    QVERIFY(window.session().settings().addPin(QStringLiteral("lm_head=replicated")));
    settle(window);
    window.raiseDock(QStringLiteral("Search"));
    QTRY_COMPARE_WITH_TIMEOUT(QApplication::focusWidget(), &window.graphArea().view(), kPatience);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().settings().pins().empty(), kPatience);
    settle(window);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Y, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(!window.session().settings().pins().empty(), kPatience);
    settle(window);
    // Another arrangement separates the docks.
    auto* line = named<QLineEdit>(window, "New breakpoint");
    window.raiseDock(QStringLiteral("Breakpoints"));
    line->setFocus();
    window.applyPreset(MainWindow::Preset::Debug);
    QTRY_COMPARE_WITH_TIMEOUT(QApplication::focusWidget(), &window.graphArea().view(), kPatience);
    // In the run view, no number field gets the keys.
    window.applyPreset(MainWindow::Preset::Run);
    QTRY_VERIFY_WITH_TIMEOUT(qobject_cast<QTabBar*>(QApplication::focusWidget()), kPatience);
    QVERIFY(window.runView().isAncestorOf(QApplication::focusWidget()));
    window.applyPreset(MainWindow::Preset::Inspect);
    QTRY_COMPARE_WITH_TIMEOUT(QApplication::focusWidget(), &window.graphArea().view(), kPatience);
  }

  /// Home goes to the first step unless it moves a cursor, and it does not change the engine.
  void homeChoosesNoEngine() {
    SessionWindow window;
    openModel(window);
    window.activateWindow();
    auto* engine = named<QComboBox>(window, "Engine");
    QVERIFY(engine);
    const int chosen = engine->currentIndex();
    engine->setFocus();
    QTest::keyClick(engine, Qt::Key_Home);
    settle(window);
    QCOMPARE(engine->currentIndex(), chosen);
    QTRY_COMPARE_WITH_TIMEOUT(window.session().debugger().wantedStep(), solve::StepId(0), kPatience);
  }

  /// Without a place to go back to, Alt+Left must not act as Left in the tree: that would focus another module and
  /// clear the forward history.
  void theEndsOfTheHistoryAreQuiet() {
    SessionWindow window;
    openModel(window);
    Selection& selection = window.session().selection();
    auto* tree = window.findChild<QTreeView*>();
    tree->expandAll();
    for (const char* module : {"model", "model.layers.0", "model.layers.0.mlp"}) {
      const graph::Graph& graph = *window.session().opened().graph();
      for (const auto scope : idRange<graph::ScopeId>(graph.scopes.size()))
        if (graph.scope(scope).path == module) selection.focusScope(scope);
      QCoreApplication::processEvents();
    }
    const Focus last = selection.focus();
    tree->setFocus();
    for (int i = 0; i < 300; ++i) QTest::keyClick(tree, Qt::Key_Left, Qt::AltModifier);
    QVERIFY(!selection.canGoBack() && selection.canGoForward());
    const Focus first = selection.focus();
    const QModelIndex at = tree->currentIndex();
    const bool wasOpen = tree->isExpanded(at);
    for (int i = 0; i < 3; ++i) QTest::keyClick(tree, Qt::Key_Left, Qt::AltModifier);
    QCOMPARE(tree->currentIndex(), at);
    QCOMPARE(tree->isExpanded(at), wasOpen);
    QVERIFY(selection.focus() == first);
    for (int i = 0; i < 300; ++i) QTest::keyClick(tree, Qt::Key_Right, Qt::AltModifier);
    QVERIFY(selection.focus().scope == last.scope && !selection.canGoForward());
  }

  void textFieldsKeepWhatEdits() {
    SessionWindow window;
    openModel(window);
    auto* line = named<QLineEdit>(window, "Search the graph");
    line->setFocus();
    const StepId step = window.session().debugger().wantedStep();
    QTest::keyClicks(line, QStringLiteral("linear 12"));
    QTest::keyClick(line, Qt::Key_Home);
    QCOMPARE(line->cursorPosition(), 0);
    QTest::keyClick(line, Qt::Key_End);
    QCOMPARE(line->cursorPosition(), 9);
    QTest::keyClick(line, Qt::Key_A, Qt::ControlModifier);
    QCOMPARE(line->selectedText(), QStringLiteral("linear 12"));
    QTest::keyClick(line, Qt::Key_X, Qt::ControlModifier);
    QCOMPARE(line->text(), QString());
    QTest::keyClick(line, Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(line->text(), QStringLiteral("linear 12"));
    settle(window);
    QCOMPARE(window.session().debugger().wantedStep(), step);
  }

  void homeAndEndStayInTables() {
    SessionWindow window;
    openModel(window);
    window.raiseDock(QStringLiteral("Nodes"));
    QTableView* table = tablePanel(window, "Filter operators")->table();
    table->setFocus();
    const StepId step = window.session().debugger().wantedStep();
    QTest::keyClick(table, Qt::Key_Down);
    QTest::keyClick(table, Qt::Key_End);
    QCOMPARE(table->currentIndex().column(), table->model()->columnCount() - 1);
    QTest::keyClick(table, Qt::Key_Home);
    QCOMPARE(table->currentIndex().column(), 0);
    auto* tree = named<QTreeView>(window, "Modules");
    tree->setFocus();
    QTest::keyClick(tree, Qt::Key_Home);
    settle(window);
    QCOMPARE(window.session().debugger().wantedStep(), step);
    QTest::keyClick(&window.graphArea().view(), Qt::Key_Home);  // in other widgets they belong to the search
    settle(window);
    QCOMPARE(window.session().debugger().wantedStep(), StepId(0));
  }

  void filteringATableLeavesTheFocus() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    window.raiseDock(QStringLiteral("Nodes"));
    TablePanel* panel = tablePanel(window, "Filter operators");
    session.selection().focusValue(session.opened().graph()->findValue("linear_2"));
    settle(window);
    const auto current = [&] { return panel->table()->currentIndex().siblingAtColumn(0).data().toString(); };
    QTRY_COMPARE_WITH_TIMEOUT(current(), QStringLiteral("linear_2"), kPatience);
    const Focus before = session.selection().focus();
    auto* field = named<QLineEdit>(*panel, "Filter operators");
    for (const char* words : {"softmax", "op that is not there", "linear", ""}) {
      field->setText(QLatin1String(words));
      QTest::qWait(100);
      QVERIFY2(session.selection().focus() == before, words);
    }
    QCOMPARE(current(), QStringLiteral("linear_2"));
  }

  /// It does not move the tree to a module that the user did not choose.
  void filteringModulesMarksNoOther() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    window.raiseDock(QStringLiteral("Modules"));
    session.selection().focusValue(session.opened().graph()->findValue("linear_2"));
    settle(window);
    auto* field = named<QLineEdit>(window, "Filter modules");
    const auto* tree = named<QTreeView>(window, "Modules");
    const auto marked = [&] {
      QStringList rows;
      for (const QModelIndex& row : tree->selectionModel()->selectedRows()) rows << row.data().toString();
      return rows.join(QLatin1Char(' '));
    };
    QTRY_VERIFY_WITH_TIMEOUT(!marked().isEmpty(), kPatience);
    const QString focused = marked();
    const Focus before = session.selection().focus();
    for (const char* words : {"lm_head", "module that is not there"}) {
      field->setText(QLatin1String(words));
      QCOMPARE(marked(), QString());
      QVERIFY2(session.selection().focus() == before, words);
    }
    field->clear();
    QCOMPARE(marked(), focused);
  }

  void theTimelineHasKeys() {
    SessionWindow window;
    openModel(window);
    window.raiseDock(QStringLiteral("Search"));
    auto* timeline = window.findChild<SearchTimeline*>();
    QVERIFY(timeline->focusPolicy() & Qt::TabFocus);
    Session& session = window.session();
    const StepId count = session.debugger().stepCount();
    const auto press = [&](int key) {
      QTest::keyClick(timeline, Qt::Key(key));
      settle(window);
      return session.debugger().wantedStep();
    };
    QCOMPARE(press(Qt::Key_Left), count - 1);
    QCOMPARE(press(Qt::Key_Right), count);
    QCOMPARE(press(Qt::Key_PageUp), count - count / 10);
    QCOMPARE(press(Qt::Key_Home), StepId(0));
    QCOMPARE(press(Qt::Key_PageDown), count / 10);
    QVERIFY2(timeline->accessibleDescription().contains(QString::number(count / 10)),
             qPrintable(timeline->accessibleDescription()));
    const int all = timeline->xOf(count);
    press(Qt::Key_Plus);
    QVERIFY(timeline->xOf(count) > all);  // zoomed in
    QCOMPARE(press(Qt::Key_End), count);
    QVERIFY(timeline->xOf(count) <= timeline->width());  // and follows the step
    press(Qt::Key_0);
    QCOMPARE(timeline->xOf(count), all);
  }

  void theRankBarsHaveKeys() {
    RankBars bars;
    std::vector<RankView> ranks(3);
    for (int i = 0; i < 3; ++i)
      ranks[std::size_t(i)].rank = i, ranks[std::size_t(i)].memory.peak = {(i + 1) << 20, (i + 1) << 20};
    bars.setRanks(ranks, 1 << 20);
    bars.show();
    QVERIFY(bars.focusPolicy() & Qt::TabFocus);
    QSignalSpy chosen(&bars, &RankBars::rankChosen);
    const auto press = [&](int key) {
      QTest::keyClick(&bars, Qt::Key(key));
      return chosen.isEmpty() ? -1 : chosen.last().front().toInt();
    };
    QCOMPARE(press(Qt::Key_Down), 1);
    QCOMPARE(press(Qt::Key_PageDown), 2);
    QVERIFY2(bars.accessibleDescription().contains(QStringLiteral("3 MiB")), qPrintable(bars.accessibleDescription()));
    QCOMPARE(press(Qt::Key_Down), 2);
    QCOMPARE(press(Qt::Key_Up), 1);
    QCOMPARE(press(Qt::Key_PageUp), 0);
  }
};

QTEST_MAIN(TestWindowKeys)
#include "tst_window_keys.moc"
