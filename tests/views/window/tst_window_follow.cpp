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
  const NodeId node = view.model()->shownNode(window.document().focus().node);
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
    MainWindow window(false);
    openModel(window);
    GraphView& view = window.graphArea().view();
    view.expandAll();
    settle(window);
    const std::uint64_t seed = test::seed();
    std::mt19937_64 random(seed);
    Document& document = window.document();
    std::uniform_int_distribution<StepId> anyStep(0, document.stepCount());
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 30; ++i) {
        document.seek(anyStep(random));
        if (random() % 3 == 0) QThread::usleep(300);               // long enough to be computed ...
        if (random() % 5 == 0) QCoreApplication::processEvents();  // ... and sometimes even shown
      }
      settle(window);
      QTest::qWait(200);  // what flashes has flashed
      const QImage followed = view.grab().toImage();
      view.setPlacements([&](ValueId value) { return document.placementOf(value); },
                         [&](NodeId node) { return document.strategyOf(node); });
      const QImage anew = view.grab().toImage();
      QVERIFY2(
          cleave::test::looksTheSame(followed, anew),
          qPrintable(QStringLiteral("seed %1, round %2, step %3").arg(seed).arg(round).arg(document.wantedStep())));
    }
  }

  void theDecisionIsOfTheStepThatIsShown() {
    MainWindow window(false);
    openSample(window, "one-kv-head");
    Document& document = window.document();
    int shown = 0;
    QStringList behind;
    connect(&document, &Document::stepChanged, &document, [&] {
      const auto& state = document.stepState();
      if (!state || !state->event || state->step == state->size) return;
      const NodeId node = nodeOf(*state->event);
      if (!node.isValid()) return;
      ++shown;
      solve::Cursor cursor(document.trace());
      cursor.seek(state->step);
      const auto& decision = document.decision();
      if (!decision || decision->node != node || decision->setAt != solve::decisionAt(cursor, node).setAt)
        behind << QString::number(state->step);
    });
    for (int i = 0; i < 40; ++i) {
      document.seek(document.stepCount() * static_cast<StepId>(i) / 40);
      if (i % 3 == 0) settle(window);
    }
    settle(window);
    QVERIFY(shown > 10);
    QVERIFY2(behind.isEmpty(), qPrintable(behind.join(QStringLiteral(", "))));
  }

  void stepsStayInView() {
    MainWindow window(false);
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
      const auto step = static_cast<StepId>(share * static_cast<double>(window.document().stepCount()));
      window.raiseDock(QStringLiteral("Search"));
      QTest::mouseClick(timeline, Qt::LeftButton, {}, QPoint(timeline->xOf(step), 20));
      settle(window);
      QVERIFY2(showsFocus(window), QTest::toString(share));
      QCOMPARE(view.zoom(), 1.5);
    }
  }

  void linksAndTheLogBringTheFocusIntoView() {
    MainWindow window(false);
    openModel(window);
    Document& document = window.document();
    window.graphArea().view().zoomTo(1.5);
    for (const char* target : {"value:linear_0", "step:7", "value:linear_9", "step:40", "value:linear_3"}) {
      QVERIFY(document.follow(QLatin1String(target)));
      settle(window);
      QVERIFY2(showsFocus(window), target);
      QCOMPARE(window.graphArea().view().zoom(), 1.5);
    }
    window.raiseDock(QStringLiteral("Search"));
    auto* log = window.findChild<EventLogView*>();
    const auto isOnScreen = [&](StepId step) {
      const int first = log->verticalScrollBar()->value(), row = static_cast<int>(step) - 1;
      return row >= first && row < first + log->viewport()->height() / (log->fontMetrics().height() + 4);
    };
    for (const StepId step : {StepId(3), document.stepCount() / 2, document.stepCount() - 1}) {
      document.seek(step);
      settle(window);
      QVERIFY2(isOnScreen(step), QTest::toString(step));
    }
    QVERIFY(document.follow(QStringLiteral("value:linear_0")));  // decided long before
    const StepId decided = document.stepState()->assignedAt[document.focus().node.index()] + 1;
    QVERIFY(decided < document.wantedStep());
    QVERIFY(isOnScreen(decided));
  }

  void whatFollowingUnfoldsIsFoldedAgain() {
    MainWindow window(false);
    openModel(window);
    GraphView& view = window.graphArea().view();
    Document& document = window.document();
    QVERIFY(view.expandedScopes().empty());
    const auto stepIn = [&](const char* scope) {
      const std::string path = document.graph()->scope(document.graph()->findScope(scope)).path;
      const auto& assigned = document.stepState()->assignedAt;
      for (const NodeId node : idRange<NodeId>(assigned.size()))
        if (assigned[node.index()] != kNoStep &&
            document.graph()->scope(document.graph()->node(node).scope).path.starts_with(path))
          return assigned[node.index()] + 1;
      return StepId(0);
    };
    const StepId first = stepIn("model.layers.0.mlp"), second = stepIn("model.layers.1.mlp");
    QVERIFY(first > 0 && second > first);
    document.seek(first);
    settle(window);
    const ScopeId opened = document.graph()->findScope("model.layers.0");
    QVERIFY(view.isExpanded(opened));
    document.seek(second);
    settle(window);
    QVERIFY(!view.isExpanded(opened));
    QVERIFY(view.isExpanded(document.graph()->findScope("model.layers.1")));
    view.expand(opened);  // by the user: it stays
    settle(window);
    document.seek(first);
    settle(window);
    document.seek(second);
    settle(window);
    QVERIFY(view.isExpanded(opened));
  }

  void conflictsBeginAnewAfterTheLast() {
    MainWindow window(false);
    openSample(window, "one-kv-head");
    Document& document = window.document();
    const auto isConflict = [&] { return document.stepState()->event->type == solve::EventType::Conflict; };
    QVERIFY(isConflict());  // a sample about conflicts opens on the first one
    const StepId first = document.wantedStep();
    press(window, Qt::Key_F8, Qt::ShiftModifier);
    QVERIFY(isConflict());
    const StepId last = document.wantedStep();
    QVERIFY(last > first);
    QVERIFY2(message(window).contains("last one again"), qPrintable(message(window)));
    press(window, Qt::Key_F8);
    QCOMPARE(document.wantedStep(), first);
    QVERIFY2(message(window).contains("first one again"), qPrintable(message(window)));
    press(window, Qt::Key_F10);
    // It spoke of another step; what there is to know of the plan was there before it, and is there again.
    QCOMPARE(message(window).section(QStringLiteral(" ("), 0, 0), prose(document.plan()->warnings.front()));
    document.seek(document.stepCount());
    settle(window);
    press(window, Qt::Key_F8);
    QCOMPARE(document.wantedStep(), first);
  }

  void aSearchWithoutConflictsSaysSo() {
    MainWindow window(false);
    openSample(window, "tiny-llama");
    const StepId before = window.document().wantedStep();
    QCOMPARE(before, window.document().stepCount());
    press(window, Qt::Key_F8);
    QCOMPARE(window.document().wantedStep(), before);
    QVERIFY2(message(window).contains("no conflict"), qPrintable(message(window)));
  }

  void messagesGoWithTheirBranch() {
    MainWindow window(false);
    openModel(window);
    Document& document = window.document();
    QVERIFY(document.addPin(QStringLiteral("lm_head=row")).has_value());
    settle(window);
    QVERIFY(!document.plan());
    const QString said = message(window);
    QVERIFY2(said.contains("There is no solution"), qPrintable(said));
    document.showBranch(0);
    settle(window);
    QVERIFY2(message(window) != said, qPrintable(message(window)));
    document.showBranch(1);
    settle(window);
    QCOMPARE(message(window), said);
    document.dropBranch();
    settle(window);
    QVERIFY(!message(window).contains("There is no solution"));
  }

  void whatIsSaidOfThePlanStandsBehindOtherMessages() {
    MainWindow window(false);
    openSample(window, "one-kv-head");
    Document& document = window.document();
    emit document.message(QStringLiteral("of the plan"), Severity::Warning, About::Plan);
    emit document.message(QStringLiteral("of the moment"), Severity::Failure);
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
    MainWindow window(false);
    openModel(window);
    GraphView& view = window.graphArea().view();
    emit window.document().message({}, Severity::Info, About::Plan);
    QCOMPARE(message(window), QString());
    view.fit();
    if (!isFitted) view.zoomTo(0.9);
    const Standpoint before(view);
    const int height = view.viewport()->height();
    for (const char* text : {"short", "long. "}) {
      emit window.document().message(QString::fromLatin1(text).repeated(60), Severity::Failure);
      QTest::qWait(20);
      QVERIFY(view.viewport()->height() < height);
      QVERIFY(Standpoint(view) == before);
    }
    emit window.document().message({}, Severity::Info);
    QTest::qWait(20);
    QCOMPARE(view.viewport()->height(), height);
    QVERIFY(Standpoint(view) == before);
  }
};

QTEST_MAIN(TestWindowFollow)
#include "tst_window_follow.moc"
