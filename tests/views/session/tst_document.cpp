// The document on a real model: opening, solving, stepping, pins, focus, and failures that change nothing.
#include <QSignalSpy>
#include <QtTest>

#include "views/base/text.h"
#include "views/panels/explain_text.h"
#include "views/session/document.h"

using namespace cleave;
using namespace cleave::views;

class TestDocument : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }
  void opensAndSolves();
  void failedOpenLeavesTheDocumentAsItWas();
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

 private:
  static void open(Document& document, const char* model = "llama") {
    document.setEngine(solve::Engine::Reference);  // the fastest plan of a tiny model splits nothing
    document.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/") + QLatin1String(model));
    QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.stepState(), 60'000);
  }
  static NodeId firstLayer(const Document& document) {
    for (const NodeId node : idRange<NodeId>(document.graph()->nodes.size()))
      if (const auto layer = graph::layerShape(*document.graph(), node);
          layer && layer->kind == graph::LayerKind::Linear)
        return node;
    return {};
  }
};

void TestDocument::opensAndSolves() {
  Document document;
  QSignalSpy ended(&document, &Document::workEnded);
  open(document);
  QVERIFY(document.model());
  QVERIFY(document.plan());
  QCOMPARE(document.stepState()->step, document.stepCount());
  for (const auto& placement : document.stepState()->placements) QVERIFY(placement.has_value());
  QCOMPARE(document.title(), QStringLiteral("llama"));
}

void TestDocument::failedOpenLeavesTheDocumentAsItWas() {
  Document document;
  open(document);
  const auto model = document.model();
  const auto plan = document.plan();
  QString said;
  connect(&document, &Document::message, this, [&](const QString& text, Severity severity) {
    if (severity == Severity::Failure) said = text;
  });
  document.openSource(QStringLiteral("/nowhere/at/all"));
  QTRY_VERIFY(!said.isEmpty());
  QVERIFY(said.contains(QStringLiteral("/nowhere/at/all")));
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.model(), model);
  QCOMPARE(document.plan(), plan);
}

void TestDocument::stepsForwardsAndBackwards() {
  Document document;
  open(document);
  document.seek(0);
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.stepState()->assigned, std::size_t(0));
  document.stepInto();
  QTRY_VERIFY(document.isIdle());
  const StepId decision = document.wantedStep();
  QVERIFY(decision > 0);
  QVERIFY(document.stepState()->event->type == solve::EventType::Try);
  document.stepBy(+1);
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.stepState()->step, decision + 1);
  document.stepOut();
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.stepState()->step, decision);
  QCOMPARE(document.focus().node, NodeId(document.stepState()->event->node));
  document.stepBy(-1'000'000);
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.stepState()->step, StepId(0));
}

void TestDocument::newestSeekWins() {
  Document document;
  open(document);
  for (StepId step = 0; step <= 40; ++step) document.seek(step);
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.stepState()->step, StepId(40));
}

void TestDocument::pinsAreUndoable() {
  Document document;
  open(document);
  const NodeId node = firstLayer(document);
  const QString spec = toQ(graph::layerName(*document.graph(), node)) + QStringLiteral("=replicated");
  QVERIFY(document.strategyOf(node) != std::optional(rules::Strategy::Whole));
  QVERIFY(document.addPin(spec).has_value());
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.pins().size(), std::size_t(1));
  QVERIFY(document.solved()->result.outcome != solve::Outcome::Stopped);
  document.undoStack().undo();
  QTRY_VERIFY(document.isIdle());
  QVERIFY(document.pins().empty());
  QVERIFY(document.plan());
  document.undoStack().redo();
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(document.pins().size(), std::size_t(1));
}

void TestDocument::pinThatMatchesNothingIsRefused() {
  Document document;
  open(document);
  const auto added = document.addPin(QStringLiteral("no.such.layer=row"));
  QVERIFY(!added);
  QVERIFY(document.pins().empty());
  QVERIFY(document.plan());
}

void TestDocument::focusHistoryGoesBackAndForward() {
  Document document;
  open(document);
  document.focusNode(NodeId(5));
  QVERIFY(document.follow(QStringLiteral("node:9")));
  QVERIFY(document.follow(QStringLiteral("scope:")));
  QVERIFY(document.canGoBack());
  document.goBack();
  QCOMPARE(document.focus().node, NodeId(9));
  document.goBack();
  QCOMPARE(document.focus().node, NodeId(5));
  QVERIFY(!document.canGoBack());
  document.goForward();
  QCOMPARE(document.focus().node, NodeId(9));
  for (const char* bad : {"node:999999999", "value:none", "scope:no.where", "step:x", "", "else:1"})
    QVERIFY(!document.follow(QString::fromLatin1(bad)));
}

void TestDocument::breakpointStopsTheWalk() {
  Document document;
  open(document);
  const NodeId node = firstLayer(document);
  document.toggleBreakpoint(node);
  QVERIFY(document.hasBreakpoint(node));
  document.seek(0);
  document.runToBreakpoint(true);
  QTRY_VERIFY(document.isIdle());
  QCOMPARE(NodeId(document.stepState()->event->node), node);
  document.toggleBreakpoint(node);
  QVERIFY(!document.hasBreakpoint(node));
  document.undoStack().undo();
  QVERIFY(document.hasBreakpoint(node));
}

void TestDocument::explainsLayersAndModules() {
  Document document;
  open(document);
  const TextColors colors{"#555555", "#008000", "#d00000"};
  document.focusNode(firstLayer(document));
  QTRY_VERIFY(document.decision());
  const DecisionText layer = decisionText(document, colors);
  QVERIFY(layer.title.contains(QStringLiteral("column")));
  QVERIFY(layer.html.contains(QStringLiteral("chosen")));
  QVERIFY(!layer.pins.empty());
  document.follow(QStringLiteral("scope:"));
  QVERIFY(decisionText(document, colors).html.contains(QStringLiteral("layers")));
  QVERIFY(conflictText(document, colors).contains(QStringLiteral("no conflict")));
}

/// The sample whose search meets conflicts.
static std::optional<pipeline::Sample> oneKvHead() {
  const auto samples = pipeline::bundledSamples();
  if (!samples) return std::nullopt;
  const auto sample =
      std::find_if(samples->begin(), samples->end(), [](const auto& s) { return s.name == "one-kv-head"; });
  return sample == samples->end() ? std::nullopt : std::optional(*sample);
}

void TestDocument::backLeadsToTheStepsOneCameFrom() {
  const auto sample = oneKvHead();
  QVERIFY(sample.has_value());
  Document document;
  document.openSample(*sample);
  const auto isAtConflict = [&] { return document.isIdle() && document.stepState() && document.stepState()->conflict; };
  QTRY_VERIFY_WITH_TIMEOUT(isAtConflict(), 60'000);
  const Focus first = document.focus();
  const auto back = [&] {
    document.goBack();
    [&] { QTRY_VERIFY(document.isIdle()); }();
  };
  document.focusNode(NodeId(3));
  back();
  QCOMPARE(document.focus(), first);
  QCOMPARE(document.stepState()->step, first.step);
  document.nextConflict();
  QTRY_VERIFY(isAtConflict() && document.stepState()->step != first.step);
  const Focus second = document.focus();
  for (int i = 0; i < 3; ++i) {
    document.stepBy(1);
    QTRY_VERIFY(document.isIdle());
  }
  QVERIFY(document.stepState()->step == second.step + 3);
  back();
  QCOMPARE(document.focus(), second);
  back();
  QCOMPARE(document.focus(), first);
  QVERIFY(!document.canGoBack());
}

void TestDocument::aSamplesTitleIsOfItsSettings() {
  const auto sample = oneKvHead();
  QVERIFY(sample.has_value());
  Document document;
  document.openSample(*sample);
  QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.solved(), 60'000);
  QCOMPARE(document.title(), toQ(sample->title));
  document.setRanks(4);
  QVERIFY2(!document.title().isEmpty() && !document.title().contains(QLatin1String("2 ranks")),
           qPrintable(document.title()));
  document.setRanks(2);
  QCOMPARE(document.title(), toQ(sample->title));
}

void TestDocument::stoppedSearchKeepsItsTrace() {
  const auto samples = pipeline::bundledSamples();
  if (!samples) QSKIP(samples.error().message.c_str());
  const auto exploding = std::find_if(samples->begin(), samples->end(), [](const pipeline::Sample& s) {
    return s.name.find("explod") != std::string::npos;
  });
  if (exploding == samples->end()) QSKIP("no exploding sample is bundled");
  Document document;
  document.openSample(*exploding);
  QTRY_VERIFY_WITH_TIMEOUT(document.isLive() || document.isIdle(), 60'000);
  document.stop();
  QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.stepState(), 30'000);
  QVERIFY(document.stepCount() > 0);
  document.seek(document.stepCount() / 2);
  QTRY_VERIFY(document.isIdle());
  QVERIFY(document.stepState()->step > 0);
}

QTEST_GUILESS_MAIN(TestDocument)
#include "tst_document.moc"
