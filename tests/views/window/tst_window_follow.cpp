// What follows the step and the focus: colours, canvas, log, and messages that go with what they speak of.
#include <QScrollBar>
#include <QToolButton>
#include <random>

#include "solve/explain/decision.h"
#include "tests/support/images.h"
#include "tests/support/seeds.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/text.h"
#include "views/panels/event_log.h"
#include "views/panels/timeline.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

/// The box that stands for the focused node lies in the window, whole.
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

/// Where the canvas is on the screen, and what of the model it shows at its first pixel.
struct Standpoint {
  QPoint corner;
  QPointF world;
  double zoom = 0;
  explicit Standpoint(GraphView& view)
      : corner(view.viewport()->mapToGlobal(QPoint(0, 0))), world(view.visibleArea().topLeft()), zoom(view.zoom()) {}
  bool operator==(const Standpoint&) const = default;
};

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
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 30; ++i) {
        session.debugger().seek(anyStep(random));
        if (random() % 3 == 0) QThread::usleep(300);               // long enough to be computed ...
        if (random() % 5 == 0) QCoreApplication::processEvents();  // ... and sometimes even shown
      }
      settle(window);
      QTest::qWait(200);  // what flashes has flashed
      const QImage followed = view.grab().toImage();
      view.setPlacements([&](ValueId value) { return session.debugger().placementOf(value); },
                         [&](NodeId node) { return session.debugger().strategyOf(node); });
      const QImage anew = view.grab().toImage();
      QVERIFY2(
          cleave::test::looksTheSame(followed, anew),
          qPrintable(
              QStringLiteral("seed %1, round %2, step %3").arg(seed).arg(round).arg(session.debugger().wantedStep())));
    }
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
      QCOMPARE(view.zoom(), 1.5);  // the user's
    }
    auto* timeline = window.findChild<Timeline*>();
    for (const double share : {0.05, 0.9, 0.3, 0.6}) {
      const auto step = static_cast<StepId>(share * static_cast<double>(window.session().debugger().stepCount()));
      window.raiseDock(QStringLiteral("Search"));
      QTest::mouseClick(timeline, Qt::LeftButton, {}, QPoint(timeline->xOf(step), 20));
      settle(window);
      QVERIFY2(showsFocus(window), QTest::toString(share));
      QCOMPARE(view.zoom(), 1.5);
    }
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
    QVERIFY(session.selection().focusValue(session.opened().graph()->findValue("linear_0")));  // decided long before
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
    view.expand(opened);  // by the user: it stays
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
    // It spoke of another step; what there is to know of the plan was there before it, and is there again.
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
