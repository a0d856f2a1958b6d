// The parts that follow the step and the focus: colours, canvas, log, and messages that disappear with their subject.
#include <QAbstractItemModelTester>
#include <QScrollBar>
#include <QToolButton>
#include <random>

#include "solve/explain/decision.h"
#include "tests/support/images.h"
#include "tests/support/seeds.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/graph/view/legend.h"
#include "views/panels/event_log.h"
#include "views/panels/modules_model.h"
#include "views/panels/nodes_model.h"
#include "views/panels/search_timeline.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

int colourDistance(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue());
}

/// The box of the focused node is fully inside the window.
bool showsFocus(MainWindow& window) {
  const GraphView& view = window.graphArea().view();
  const NodeId node = view.model()->shownNode(window.session().selection().focus().node);
  const auto item = node.isValid() && view.scene() ? view.scene()->itemOf(*view.model(), node) : SceneItem::kNone;
  return item != SceneItem::kNone && view.visibleArea().contains(view.scene()->items()[item].rect);
}

void press(MainWindow& window, Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
  QTest::keyClick(&window, key, modifiers);
  settle(window);
}

/// The canvas's position on the screen, and the model's position at its first pixel.
struct Standpoint {
  QPoint corner;
  QPointF world;
  double zoom = 0;
  explicit Standpoint(GraphView& view)
      : corner(view.viewport()->mapToGlobal(QPoint(0, 0))), world(view.visibleArea().topLeft()), zoom(view.zoom()) {}
  bool operator==(const Standpoint&) const = default;
};

/// The number of values below a module (itself included) with this placement, counted one by one from the state.
std::array<std::uint32_t, kTintCount> valuesIn(const graph::Graph& graph, const StepState& state, ScopeId module) {
  std::array<std::uint32_t, kTintCount> values{};
  for (const graph::Node& node : graph.nodes) {
    ScopeId scope = node.scope;
    while (scope.isValid() && scope != module) scope = graph.scope(scope).parent;
    if (scope == module && node.kind == graph::NodeKind::Call && !node.results.empty())
      ++values[std::size_t(tintOf(state.placements[node.results[0].index()], state.ranks))];
  }
  return values;
}

/// The first difference of canvas, legend, tree or table from the state. Empty: none.
QString contradiction(MainWindow& window) {
  const GraphView& view = window.graphArea().view();
  const StepState& state = *window.session().debugger().state();
  const graph::Graph& graph = *window.session().opened().graph();
  auto* modules = window.findChild<ModulesModel*>();
  const auto* nodes = window.findChild<NodesModel*>();
  if (!modules || !nodes) return QStringLiteral("a model is missing");
  const QAbstractItemModelTester tester(modules, QAbstractItemModelTester::FailureReportingMode::QtTest);
  if (view.findChild<Legend*>()->content().values != valuesIn(graph, state, ScopeId(0)))
    return QStringLiteral("legend");
  for (const ScopeId scope : idRange<ScopeId>(graph.scopes.size())) {
    const QModelIndex row = modules->indexOf(scope).siblingAtColumn(ModulesModel::Split);
    const auto tally = row.data(kSplitTallyRole).value<SplitTally>();
    const QString name = QString::fromStdString(graph.scope(scope).path);
    if (tally.values != valuesIn(graph, state, scope)) return QStringLiteral("tree: ") + name;
    const ModuleId module = view.model()->moduleOf(scope);
    const bool isDrawn = module != view.model()->root() && view.model()->module(module).scope == scope;
    if (isDrawn && view.board()->tally(module).split != tally) return QStringLiteral("canvas: ") + name;
    if (const QModelIndex above = row.parent(); above.data().toString().contains(QStringLiteral("×"))) {
      SplitTally sum;
      for (int i = 0; i < modules->rowCount(above); ++i)
        sum += modules->index(i, ModulesModel::Split, above).data(kSplitTallyRole).value<SplitTally>();
      if (sum != above.siblingAtColumn(ModulesModel::Split).data(kSplitTallyRole).value<SplitTally>())
        return QStringLiteral("stack of ") + name;
    }
  }
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto& results = graph.node(node).results;
    const QModelIndex row = nodes->index(int(node.index()), NodesModel::PlacementColumn);
    if (!results.empty() && row.data(kPlacementRole).value<MaybePlacement>() != state.placements[results[0].index()])
      return QStringLiteral("table: ") + row.siblingAtColumn(NodesModel::Name).data().toString();
    const auto& strategy = state.strategies[node.index()];
    const QString said = row.siblingAtColumn(NodesModel::StrategyColumn).data().toString();
    if (said != (strategy ? toQ(rules::toText(*strategy)) : QString())) return QStringLiteral("strategy: ") + said;
  }
  return {};
}

}  // namespace

class TestWindowFollow : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void droppedSeeksLeaveNothingStale() {
    SessionWindow window;
    openModel(window);
    GraphView& view = window.graphArea().view();
    view.expandAll();
    settle(window);
    const std::uint64_t seed = test::seed();
    std::mt19937_64 random(seed);
    Session& session = window.session();
    std::uniform_int_distribution<StepId> anyStep(0, session.debugger().stepCount());
    for (std::uint64_t round = 0, rounds = test::rounds(20); round < rounds; ++round) {
      for (int i = 0; i < 30; ++i) {
        session.debugger().seek(anyStep(random));
        if (random() % 3 == 0) QThread::usleep(300);               // sometimes long enough to be computed ...
        if (random() % 5 == 0) QCoreApplication::processEvents();  // ... and sometimes long enough to be shown
      }
      settle(window);
      QTest::qWait(200);  // the highlights have ended
      const QImage followed = view.grab().toImage();
      view.showSplits();
      const QImage anew = view.grab().toImage();
      QVERIFY2(
          cleave::test::looksTheSame(followed, anew),
          qPrintable(
              QStringLiteral("seed %1, round %2, step %3").arg(seed).arg(round).arg(session.debugger().wantedStep())));
    }
  }

  /// Steps and seeks in any order, also to the end, which places more than the search did, and back.
  void canvasTreeAndTableSayTheSame() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    Debugger& debugger = window.session().debugger();
    const std::uint64_t seed = test::seed();
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<StepId> anyStep(0, debugger.stepCount());
    QSet<StepId> seen;
    for (std::uint64_t round = 0, rounds = test::rounds(40); round < rounds; ++round) {
      switch (random() % 5) {
        case 0: debugger.seek(debugger.stepCount()); break;
        case 1: debugger.seek(0); break;
        case 2: debugger.seek(anyStep(random)); break;
        default: debugger.stepBy(random() % 2 == 0 ? 1 : -1);
      }
      settle(window);
      seen.insert(debugger.state()->step);
      const QString wrong = contradiction(window);
      QVERIFY2(wrong.isEmpty(), qPrintable(QStringLiteral("%1: seed %2, round %3, step %4")
                                               .arg(wrong)
                                               .arg(seed)
                                               .arg(round)
                                               .arg(debugger.state()->step)));
    }
    QVERIFY(seen.size() > 3);
  }

  void theDecisionIsOfTheStepThatIsShown() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    Session& session = window.session();
    int shown = 0;
    QStringList behind;
    connect(&session.debugger(), &Debugger::stepChanged, &session, [&] {
      const auto& state = session.debugger().state();
      if (!state || !state->event || state->step == state->size) return;
      const NodeId node = nodeOf(*state->event);
      if (!node.isValid()) return;
      ++shown;
      solve::Cursor cursor(session.debugger().trace());
      cursor.seek(state->step);
      const auto& decision = session.debugger().decision();
      if (!decision || decision->node != node || decision->setAt != solve::decisionAt(cursor, node).setAt)
        behind << QString::number(state->step);
    });
    for (int i = 0; i < 40; ++i) {
      session.debugger().seek(session.debugger().stepCount() * static_cast<StepId>(i) / 40);
      if (i % 3 == 0) settle(window);
    }
    settle(window);
    QVERIFY(shown > 10);
    QVERIFY2(behind.isEmpty(), qPrintable(behind.join(QStringLiteral(", "))));
  }

  void stepsStayInView() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    GraphView& view = window.graphArea().view();
    press(window, Qt::Key_F8);
    QVERIFY(showsFocus(window));
    view.zoomTo(1.5);
    for (const Qt::Key key : {Qt::Key_F8, Qt::Key_F10, Qt::Key_F10, Qt::Key_F10, Qt::Key_F11, Qt::Key_F8}) {
      press(window, key);
      QVERIFY2(showsFocus(window), QTest::toString(key));
      QCOMPARE(view.zoom(), 1.5);  // chosen by the user
    }
    auto* timeline = window.findChild<SearchTimeline*>();
    for (const double share : {0.05, 0.9, 0.3, 0.6}) {
      const auto step = static_cast<StepId>(share * static_cast<double>(window.session().debugger().stepCount()));
      window.raiseDock(QStringLiteral("Search"));
      QTest::mouseClick(timeline, Qt::LeftButton, {}, QPoint(timeline->xOf(step), 20));
      settle(window);
      QVERIFY2(showsFocus(window), QTest::toString(share));
      QCOMPARE(view.zoom(), 1.5);
    }
  }

  /// A search with room for each event: a cross is at its conflict, and a click on it leads there.
  void marksOfTheTimelineStandAtTheirSteps() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    for (const char* pin : {"lm_head=replicated", "model.embed_tokens=replicated"}) {
      QVERIFY(window.session().settings().addPin(QString::fromLatin1(pin)));
      window.session().solve();
      settle(window);
    }
    Debugger& debugger = window.session().debugger();
    const auto trace = debugger.trace();
    window.raiseDock(QStringLiteral("Search"));
    auto* timeline = window.findChild<SearchTimeline*>();
    if (trace->size() * 8 > static_cast<StepId>(timeline->width())) QFAIL("there is no room for each event");
    const Theme theme = Theme::of(window.palette());
    std::vector<solve::Event> events(trace->size());
    trace->read(0, events);
    int conflicts = 0;
    debugger.seek(0);
    settle(window);
    const QImage picture = timeline->grab().toImage();
    constexpr int kRow = 4 + 11 / 2;  // the middle of the crosses
    for (StepId step = 1; step <= trace->size(); ++step) {
      const bool isConflict = events[step - 1].type == solve::EventType::Conflict;
      const QColor there = picture.pixelColor(timeline->xOf(step), kRow);
      QCOMPARE(colourDistance(there, theme.conflict) < 60, isConflict);
      if (!isConflict) continue;
      ++conflicts;
      QTest::mouseClick(timeline, Qt::LeftButton, {}, QPoint(timeline->xOf(step), kRow));
      settle(window);
      QVERIFY(debugger.state()->conflict);
    }
    QVERIFY(conflicts > 0);
  }

  void linksAndTheLogBringTheFocusIntoView() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    window.graphArea().view().zoomTo(1.5);
    const auto named = [&](const char* name) { return Target(session.opened().graph()->findValue(name)); };
    for (const Target& target :
         {named("linear_0"), Target(StepTarget{7}), named("linear_9"), Target(StepTarget{40}), named("linear_3")}) {
      QVERIFY(session.selection().follow(target));
      settle(window);
      QVERIFY2(showsFocus(window), qPrintable(toLink(target)));
      QCOMPARE(window.graphArea().view().zoom(), 1.5);
    }
    window.raiseDock(QStringLiteral("Search"));
    auto* log = window.findChild<EventLogView*>();
    const auto isOnScreen = [&](StepId step) {
      const int first = log->verticalScrollBar()->value(), row = static_cast<int>(step) - 1;
      return row >= first && row < first + log->viewport()->height() / (log->fontMetrics().height() + 4);
    };
    for (const StepId step : {StepId(3), session.debugger().stepCount() / 2, session.debugger().stepCount() - 1}) {
      session.debugger().seek(step);
      settle(window);
      QVERIFY2(isOnScreen(step), QTest::toString(step));
    }
    QVERIFY(session.selection().focusValue(session.opened().graph()->findValue("linear_0")));  // decided much earlier
    const StepId decided = session.debugger().state()->assignedAt[session.selection().focus().node.index()] + 1;
    QVERIFY(decided < session.debugger().wantedStep());
    QVERIFY(isOnScreen(decided));
  }

  void whatFollowingUnfoldsIsFoldedAgain() {
    SessionWindow window;
    openModel(window);
    GraphView& view = window.graphArea().view();
    Session& session = window.session();
    QVERIFY(view.expandedScopes().empty());
    const auto stepIn = [&](const char* scope) {
      const std::string path = session.opened().graph()->scope(session.opened().graph()->findScope(scope)).path;
      const auto& assigned = session.debugger().state()->assignedAt;
      for (const NodeId node : idRange<NodeId>(assigned.size()))
        if (assigned[node.index()] != kNoStep &&
            session.opened().graph()->scope(session.opened().graph()->node(node).scope).path.starts_with(path))
          return assigned[node.index()] + 1;
      return StepId(0);
    };
    const StepId first = stepIn("model.layers.0.mlp"), second = stepIn("model.layers.1.mlp");
    QVERIFY(first > 0 && second > first);
    session.debugger().seek(first);
    settle(window);
    const ScopeId opened = session.opened().graph()->findScope("model.layers.0");
    QVERIFY(view.isExpanded(opened));
    session.debugger().seek(second);
    settle(window);
    QVERIFY(!view.isExpanded(opened));
    QVERIFY(view.isExpanded(session.opened().graph()->findScope("model.layers.1")));
    view.expand(opened);  // opened by the user: it stays open
    settle(window);
    session.debugger().seek(first);
    settle(window);
    session.debugger().seek(second);
    settle(window);
    QVERIFY(view.isExpanded(opened));
  }

  void conflictsBeginAnewAfterTheLast() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    Session& session = window.session();
    const auto isConflict = [&] { return session.debugger().state()->event->type == solve::EventType::Conflict; };
    QVERIFY(isConflict());  // a sample about conflicts opens on the first one
    const StepId first = session.debugger().wantedStep();
    press(window, Qt::Key_F8, Qt::ShiftModifier);
    QVERIFY(isConflict());
    const StepId last = session.debugger().wantedStep();
    QVERIFY(last > first);
    QVERIFY2(message(window).contains("last one again"), qPrintable(message(window)));
    press(window, Qt::Key_F8);
    QCOMPARE(session.debugger().wantedStep(), first);
    QVERIFY2(message(window).contains("first one again"), qPrintable(message(window)));
    press(window, Qt::Key_F10);
    // It was about another step. The plan's message was there before it, and is shown again.
    QCOMPARE(message(window).section(QStringLiteral(" ("), 0, 0), prose(session.plans().plan()->warnings.front()));
    session.debugger().seek(session.debugger().stepCount());
    settle(window);
    press(window, Qt::Key_F8);
    QCOMPARE(session.debugger().wantedStep(), first);
  }

  void aSearchWithoutConflictsSaysSo() {
    SessionWindow window;
    openSample(window, "tiny-llama");
    const StepId before = window.session().debugger().wantedStep();
    QCOMPARE(before, window.session().debugger().stepCount());
    press(window, Qt::Key_F8);
    QCOMPARE(window.session().debugger().wantedStep(), before);
    QVERIFY2(message(window).contains("no conflict"), qPrintable(message(window)));
  }

  void messagesGoWithTheirBranch() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head=row")).has_value());
    settle(window);
    QVERIFY(!session.plans().plan());
    const QString said = message(window);
    QVERIFY2(said.contains("There is no solution"), qPrintable(said));
    QVERIFY2(said.contains("). These constraints conflict. You pinned lm_head to row"), qPrintable(said));
    session.plans().showBranch(0);
    settle(window);
    QVERIFY2(message(window) != said, qPrintable(message(window)));
    session.plans().showBranch(1);
    settle(window);
    QCOMPARE(message(window), said);
    session.plans().dropBranch();
    settle(window);
    QVERIFY(!message(window).contains("There is no solution"));
  }

  void whatIsSaidOfThePlanStandsBehindOtherMessages() {
    SessionWindow window;
    openSample(window, "one-kv-head");
    Session& session = window.session();
    session.notices().say(QStringLiteral("of the plan"), Severity::Warning, About::Plan);
    session.notices().say(QStringLiteral("of the moment"), Severity::Failure);
    QCOMPARE(message(window), QStringLiteral("of the moment"));
    QTest::mouseClick(window.findChild<MessageBar*>()->findChild<QToolButton*>(), Qt::LeftButton);
    QCOMPARE(message(window), QStringLiteral("of the plan"));
    QTest::mouseClick(window.findChild<MessageBar*>()->findChild<QToolButton*>(), Qt::LeftButton);
    QCOMPARE(message(window), QString());
  }

  void messagesDoNotMoveTheCanvas_data() {
    QTest::addColumn<bool>("isFitted");
    QTest::newRow("fitted") << true;
    QTest::newRow("zoomed") << false;
  }
  void messagesDoNotMoveTheCanvas() {
    QFETCH(bool, isFitted);
    SessionWindow window;
    openModel(window);
    GraphView& view = window.graphArea().view();
    window.session().notices().say({}, Severity::Info, About::Plan);
    QCOMPARE(message(window), QString());
    view.fit();
    if (!isFitted) view.zoomTo(0.9);
    const Standpoint before(view);
    const int height = view.viewport()->height();
    for (const char* text : {"short", "long. "}) {
      window.session().notices().say(QString::fromLatin1(text).repeated(60), Severity::Failure);
      QTest::qWait(20);
      QVERIFY(view.viewport()->height() < height);
      QVERIFY(Standpoint(view) == before);
    }
    window.session().notices().say({}, Severity::Info);
    QTest::qWait(20);
    QCOMPARE(view.viewport()->height(), height);
    QVERIFY(Standpoint(view) == before);
  }
};

QTEST_MAIN(TestWindowFollow)
#include "tst_window_follow.moc"
