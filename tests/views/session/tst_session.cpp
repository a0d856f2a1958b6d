// The session on a real model: opening, solving, stepping, pins, focus, and failures that change nothing.
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/patience.h"
#include "views/base/text.h"
#include "views/panels/conflict_text.h"
#include "views/panels/decision_text.h"
#include "views/session/session.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

class TestSession : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }
  void opensAndSolves();
  void failedOpenLeavesTheSessionAsItWas();
  void stepsForwardsAndBackwards();
  void newestSeekWins();
  void pinsAreUndoable();
  void pinThatMatchesNothingIsRefused();
  void focusHistoryGoesBackAndForward();
  void breakpointStopsTheWalk();
  void explainsLayersAndModules();
  void backLeadsToTheStepsOneCameFrom();
  void aSamplesTitleIsOfItsSettings();
  void stoppedSearchKeepsItsTrace();
  void stoppedBeforeAnythingWasRecordedKeepsThePlan();

 private:
  static void open(Session& session, const char* model = "llama") {
    session.settings().setEngine(solve::Engine::Reference);  // the fastest plan of a tiny model is replicated
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/") + QLatin1String(model));
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.debugger().state(), kPatience);
  }
  static NodeId firstLayer(Session& session) {
    for (const NodeId node : idRange<NodeId>(session.opened().graph()->nodes.size()))
      if (const auto layer = graph::layerShape(*session.opened().graph(), node);
          layer && layer->kind == graph::LayerKind::Linear)
        return node;
    return {};
  }
};

void TestSession::opensAndSolves() {
  Session session;
  QSignalSpy ended(&session.jobs(), &Jobs::ended);
  open(session);
  QVERIFY(session.opened().model());
  QVERIFY(session.plans().plan());
  QCOMPARE(session.debugger().state()->step, session.debugger().stepCount());
  for (const auto& placement : session.debugger().state()->placements) QVERIFY(placement.has_value());
  QCOMPARE(session.title(), QStringLiteral("llama"));
}

void TestSession::failedOpenLeavesTheSessionAsItWas() {
  Session session;
  open(session);
  const auto model = session.opened().model();
  const auto plan = session.plans().plan();
  QString said;
  connect(&session.notices(), &Notices::said, this, [&](const QString& text, Severity severity) {
    if (severity == Severity::Failure) said = text;
  });
  session.openSource(QStringLiteral("/nowhere/at/all"));
  QTRY_VERIFY_WITH_TIMEOUT(!said.isEmpty(), kPatience);
  QVERIFY(said.contains(QStringLiteral("/nowhere/at/all")));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.opened().model(), model);
  QCOMPARE(session.plans().plan(), plan);
}

void TestSession::stepsForwardsAndBackwards() {
  Session session;
  open(session);
  session.debugger().seek(0);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.debugger().state()->assigned, std::size_t(0));
  session.debugger().stepInto();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  const StepId decision = session.debugger().wantedStep();
  QVERIFY(decision > 0);
  QVERIFY(session.debugger().state()->event->type == solve::EventType::Try);
  session.debugger().stepBy(+1);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.debugger().state()->step, decision + 1);
  session.debugger().stepOut();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.debugger().state()->step, decision);
  QCOMPARE(session.selection().focus().node, NodeId(session.debugger().state()->event->node));
  session.debugger().stepBy(-1'000'000);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.debugger().state()->step, StepId(0));
}

void TestSession::newestSeekWins() {
  Session session;
  open(session);
  for (StepId step = 0; step <= 40; ++step) session.debugger().seek(step);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.debugger().state()->step, StepId(40));
}

void TestSession::pinsAreUndoable() {
  Session session;
  open(session);
  const NodeId node = firstLayer(session);
  const QString spec = toQ(graph::layerName(*session.opened().graph(), node)) + QStringLiteral("=replicated");
  QVERIFY(session.debugger().strategyOf(node) != std::optional(rules::Strategy::Replicated));
  QVERIFY(session.settings().addPin(spec).has_value());
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.settings().pins().size(), std::size_t(1));
  QVERIFY(session.plans().solved()->result.outcome != solve::Outcome::Stopped);
  session.undoStack().undo();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QVERIFY(session.settings().pins().empty());
  QVERIFY(session.plans().plan());
  session.undoStack().redo();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(session.settings().pins().size(), std::size_t(1));
}

void TestSession::pinThatMatchesNothingIsRefused() {
  Session session;
  open(session);
  const auto added = session.settings().addPin(QStringLiteral("no.such.layer=row"));
  QVERIFY(!added);
  QVERIFY(session.settings().pins().empty());
  QVERIFY(session.plans().plan());
}

void TestSession::focusHistoryGoesBackAndForward() {
  Session session;
  open(session);
  session.selection().focusNode(NodeId(5));
  QVERIFY(session.selection().follow(NodeId(9)));
  QVERIFY(session.selection().follow(ScopeId(0)));
  QVERIFY(session.selection().canGoBack());
  session.selection().goBack();
  QCOMPARE(session.selection().focus().node, NodeId(9));
  session.selection().goBack();
  QCOMPARE(session.selection().focus().node, NodeId(5));
  QVERIFY(!session.selection().canGoBack());
  session.selection().goForward();
  QCOMPARE(session.selection().focus().node, NodeId(9));
  const Target bad[] = {NodeId(999'999'999), ValueId(), ScopeId(999'999'999),
                        WhyNotTarget{rules::Strategy::Replicated}};
  for (const Target& target : bad) QVERIFY(!session.selection().follow(target));
}

void TestSession::breakpointStopsTheWalk() {
  Session session;
  open(session);
  const NodeId node = firstLayer(session);
  session.debugger().toggleBreakpoint(node);
  QVERIFY(session.debugger().hasBreakpoint(node));
  session.debugger().seek(0);
  session.debugger().runToBreakpoint(true);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(NodeId(session.debugger().state()->event->node), node);
  session.debugger().toggleBreakpoint(node);
  QVERIFY(!session.debugger().hasBreakpoint(node));
  session.undoStack().undo();
  QVERIFY(session.debugger().hasBreakpoint(node));
}

void TestSession::explainsLayersAndModules() {
  Session session;
  open(session);
  const TextColors colors{"#555555", "#008000", "#d00000"};
  session.selection().focusNode(firstLayer(session));
  QTRY_VERIFY_WITH_TIMEOUT(session.debugger().decision(), kPatience);
  const DecisionSources sources{session.opened(),   session.settings(),  session.plans(),
                                session.debugger(), session.selection(), session.answers()};
  const DecisionText layer = decisionText(sources, colors);
  QVERIFY(layer.title.contains(QStringLiteral("column")));
  QVERIFY(layer.html.contains(QStringLiteral("chosen")));
  QVERIFY(!layer.pins.empty());
  session.selection().follow(ScopeId(0));
  QVERIFY(decisionText(sources, colors).html.contains(QStringLiteral("layers")));
  QVERIFY(conflictText(session.plans(), session.debugger(), colors).contains(QStringLiteral("no conflict")));
}

/// The sample whose search meets conflicts.
static std::optional<pipeline::Sample> oneKvHead() {
  const auto samples = pipeline::bundledSamples();
  if (!samples) return std::nullopt;
  const auto sample =
      std::find_if(samples->begin(), samples->end(), [](const auto& s) { return s.name == "one-kv-head"; });
  return sample == samples->end() ? std::nullopt : std::optional(*sample);
}

void TestSession::backLeadsToTheStepsOneCameFrom() {
  const auto sample = oneKvHead();
  QVERIFY(sample.has_value());
  Session session;
  session.openSample(*sample);
  const auto isAtConflict = [&] {
    return session.isIdle() && session.debugger().state() && session.debugger().state()->conflict;
  };
  QTRY_VERIFY_WITH_TIMEOUT(isAtConflict(), kPatience);
  const Focus first = session.selection().focus();
  const auto back = [&] {
    session.selection().goBack();
    [&] { QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience); }();
  };
  session.selection().focusNode(NodeId(3));
  back();
  QCOMPARE(session.selection().focus(), first);
  QCOMPARE(session.debugger().state()->step, first.step);
  session.debugger().nextConflict();
  QTRY_VERIFY_WITH_TIMEOUT(isAtConflict() && session.debugger().state()->step != first.step, kPatience);
  const Focus second = session.selection().focus();
  for (int i = 0; i < 3; ++i) {
    session.debugger().stepBy(1);
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  }
  QVERIFY(session.debugger().state()->step == second.step + 3);
  back();
  QCOMPARE(session.selection().focus(), second);
  back();
  QCOMPARE(session.selection().focus(), first);
  QVERIFY(!session.selection().canGoBack());
}

void TestSession::aSamplesTitleIsOfItsSettings() {
  const auto sample = oneKvHead();
  QVERIFY(sample.has_value());
  Session session;
  session.openSample(*sample);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().solved(), kPatience);
  QCOMPARE(session.title(), toQ(sample->title));
  session.settings().setRanks(4);
  QVERIFY2(!session.title().isEmpty() && !session.title().contains(QLatin1String("2 ranks")),
           qPrintable(session.title()));
  session.settings().setRanks(2);
  QCOMPARE(session.title(), toQ(sample->title));
}

void TestSession::stoppedSearchKeepsItsTrace() {
  const auto samples = pipeline::bundledSamples();
  QVERIFY2(samples, samples ? "" : samples.error().message.c_str());
  const auto exploding = std::find_if(samples->begin(), samples->end(), [](const pipeline::Sample& s) {
    return s.name.find("explod") != std::string::npos;
  });
  QVERIFY(exploding != samples->end());
  Session session;
  session.openSample(*exploding);
  QTRY_VERIFY_WITH_TIMEOUT(session.debugger().isLive() || session.isIdle(), kPatience);
  session.jobs().stop();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.debugger().state(), kPatience);
  QVERIFY(session.debugger().stepCount() > 0);
  session.debugger().seek(session.debugger().stepCount() / 2);
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QVERIFY(session.debugger().state()->step > 0);
}

/// `optimal` has no trace before it has a plan, so the previous one stays.
void TestSession::stoppedBeforeAnythingWasRecordedKeepsThePlan() {
  Session session;
  session.settings().setEngine(solve::Engine::Reference);
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama-126-layers"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
  const auto plan = session.plans().plan();
  const StepId steps = session.debugger().stepCount();
  session.settings().setEngine(solve::Engine::Optimal);
  QString said;
  connect(&session.notices(), &Notices::said, &session, [&](const QString& text, Severity severity) {
    said = severity == Severity::Info ? text : QStringLiteral("not asked for: ") + text;
  });
  session.solve();
  session.jobs().stop();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  QCOMPARE(said, QStringLiteral("The search was stopped before it found a plan."));
  QCOMPARE(session.plans().plan(), plan);
  QCOMPARE(session.debugger().stepCount(), steps);
}

QTEST_GUILESS_MAIN(TestSession)
#include "tst_session.moc"
