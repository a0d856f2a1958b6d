#include "solve/checker.h"
#include "tests/support/golden.h"
#include "tests/support/llama_graph.h"

#include <QTest>

#include <chrono>
#include <thread>

using namespace cleave;
using namespace cleave::solve;

namespace {

std::string answerOf(const test::Recorded& recorded) {
  std::string text = test::textOf(*recorded.trace);
  for (const ConflictRecord& cause : recorded.result.causes) text += fmt::format("cause: {}\n", cause.reason);
  return text;
}

}  // namespace

class TestReference : public QObject {
  Q_OBJECT
 private slots:
  void searchesAsWritten_data() { test::listGoldens("golden"); }
  void searchesAsWritten() {
    QFETCH(QString, file);
    const test::Golden golden(file);
    const auto recorded = test::record(golden.problem);
    if (recorded.result.solution) {
      const auto violations = check(*golden.problem, *recorded.result.solution);
      QVERIFY2(violations.empty(), violations.empty() ? "" : violations.front().c_str());
    }
    golden.compare(answerOf(recorded));
  }

  void splitsALlamaAsMegatronDoes() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto recorded = test::record(problem);
    QVERIFY(recorded.result.solution.has_value());
    QVERIFY(check(*problem, *recorded.result.solution).empty());
    for (NodeId n : idRange<NodeId>(problem->graph->nodes.size())) {
      if (!graph::layerShape(*problem->graph, n)) continue;
      const std::string name = graph::layerName(*problem->graph, n);
      const auto axis = std::string(rules::axisOf(recorded.result.solution->strategies[n.index()]->strategy));
      const bool isRow = name.ends_with("o_proj") || name.ends_with("down_proj");
      const bool isVocab = name.ends_with("embed_tokens") || name == "loss";
      QCOMPARE(name + " " + axis, name + (isRow ? " row" : isVocab ? " vocab" : " column"));
    }
    QCOMPARE(recorded.result.stats.conflicts, std::uint64_t{0});
  }

  void needsFourTimesTheTriesForEachLayerUnderAPinWithoutSolution() {
    std::uint64_t before = 0;
    for (int layers = 1; layers <= 4; ++layers) {
      const auto problem = test::problemOf(test::llamaGraph({.layers = layers, .hasLoss = false}), 2, {"lm_head=row"});
      const auto recorded = test::record(problem);
      QCOMPARE(recorded.result.outcome, Outcome::NoSolution);
      const auto tries = recorded.result.stats.tries;
      if (layers > 1) QVERIFY2(tries > 3 * before && tries < 6 * before, qPrintable(QString::number(tries)));
      before = tries;
      QVERIFY(!recorded.result.causes.empty());
      bool namesThePin = false;
      for (const auto& cause : recorded.result.causes)
        namesThePin |= cause.pins == std::vector<std::string>{"lm_head=row"};
      QVERIFY(namesThePin);
    }
  }

  void solvesTheSameModelWithoutThePin() {
    const auto recorded = test::record(test::problemOf(test::llamaGraph({.layers = 7, .hasLoss = false}), 2));
    QCOMPARE(recorded.result.outcome, Outcome::Solved);
  }

  void givesTheSameBytesEachTime() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 3, .hasLoss = false}), 2, {"lm_head=row"});
    const auto first = test::record(problem);
    const auto second = test::record(problem);
    QVERIFY(test::eventsOf(*first.trace) == test::eventsOf(*second.trace));
    QCOMPARE(first.trace->choiceCount(), second.trace->choiceCount());
    for (std::size_t i = 0; i < first.trace->conflictCount(); ++i) {
      QVERIFY(first.trace->conflict(ConflictId(i)) == second.trace->conflict(ConflictId(i)));
    }
  }

  void stopsWithinAMillisecondAndKeepsWhatWasRecorded() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 16, .hasLoss = false}), 2, {"lm_head=row"});
    std::stop_source stop;
    std::chrono::steady_clock::time_point asked;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      asked = std::chrono::steady_clock::now();
      stop.request_stop();
    });
    const auto recorded = test::record(problem, {}, Progress(stop.get_token()));
    const auto took = std::chrono::steady_clock::now() - asked;
    stopper.join();
    QCOMPARE(recorded.result.outcome, Outcome::Stopped);
    QVERIFY(took < std::chrono::milliseconds(100));  // a loaded machine; the engine polls every 256 tries
    QVERIFY(recorded.trace->size() > 1000);
    QCOMPARE(recorded.trace->stats().events, recorded.result.stats.events);
    Event last;
    recorded.trace->read(recorded.trace->size() - 1, {&last, 1});
    QCOMPARE(last.type, EventType::Stopped);
  }

  void solvesWithoutARecordingAlike() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto sink = makeCountingSink();
    const auto counted = solve::solve(*problem, Engine::Reference, *sink);
    const auto recorded = test::record(problem);
    QCOMPARE(counted->stats.tries, recorded.result.stats.tries);
    QVERIFY(counted->solution->placements == recorded.result.solution->placements);
  }

  void readsTheNamesOfEngines() {
    for (const Engine engine : {Engine::Reference, Engine::Learning, Engine::Optimal}) {
      QCOMPARE(parseEngine(toText(engine)), std::optional(engine));
    }
    QVERIFY(!parseEngine("fastest"));
  }

  void leavesWhatDoesNotDivideWholeAndSaysSo() {
    const auto problem = test::problemOf(test::llamaGraph({.hidden = 48, .heads = 3, .kvHeads = 3, .vocab = 257}), 2);
    const auto recorded = test::record(problem);
    QCOMPARE(recorded.result.outcome, Outcome::Solved);
    const Graph& graph = *problem->graph;
    for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
      const auto layer = graph::layerShape(graph, n);
      if (!layer || layer->kind != graph::LayerKind::Embedding) continue;
      QCOMPARE(recorded.result.solution->strategies[n.index()]->strategy, rules::Strategy::Whole);
      const auto refused = rules::layerOptions(graph, n, *layer, problem->context).refused;
      QVERIFY(!refused.empty());
      QVERIFY(refused.front().reason.find("257") != std::string::npos);
    }
    QVERIFY(check(*problem, *recorded.result.solution).empty());
  }
};

QTEST_APPLESS_MAIN(TestReference)
#include "tst_reference.moc"
