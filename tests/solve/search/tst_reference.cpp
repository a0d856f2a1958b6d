#include "solve/checker.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <stop_token>

using namespace cleave;
using namespace cleave::solve;

namespace {

/// Records a search and stops it at its n-th try.
class StopsAtATry final : public TraceSink {
 public:
  StopsAtATry(TraceSink& inner, std::uint64_t at) : m_inner(inner), m_left(at) {}
  void onStart(Engine engine) override { m_inner.onStart(engine); }
  ChoiceId internChoice(Choice choice) override { return m_inner.internChoice(std::move(choice)); }
  ConflictId internConflict(ConflictRecord conflict) override { return m_inner.internConflict(std::move(conflict)); }
  bool onEvent(const Event& event) override {
    if (event.type == EventType::Try && m_left > 0 && --m_left == 0) stop.request_stop();
    return m_inner.onEvent(event);
  }
  std::stop_source stop;

 private:
  TraceSink& m_inner;
  std::uint64_t m_left;
};

}  // namespace

class TestReference : public QObject {
  Q_OBJECT
 private slots:
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

  /// A running search checks for a stop request every 256 tries.
  void stopsWithin256TriesAndKeepsTheRecord() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 16, .hasLoss = false}), 2, {"lm_head=row"});
    TraceRecorder recorder(problem, {});
    StopsAtATry sink(recorder, 10'000);
    const auto result = solve::solve(*problem, Engine::Reference, sink, Progress(sink.stop.get_token()));
    QVERIFY(result.has_value());
    QCOMPARE(result->outcome, Outcome::Stopped);
    QVERIFY(result->stats.tries >= 10'000 && result->stats.tries <= 10'000 + 256);
    const auto trace = recorder.trace();
    QVERIFY(trace->size() > 1000);
    QCOMPARE(trace->stats().events, result->stats.events);
    Event last;
    trace->read(trace->size() - 1, {&last, 1});
    QCOMPARE(last.type, EventType::Stopped);
  }

  void solvesEquallyWithoutARecording() {
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

  void reportsLayersThatDoNotDivide() {
    const auto problem = test::problemOf(test::llamaGraph({.hidden = 48, .heads = 3, .kvHeads = 3, .vocab = 257}), 2);
    const auto recorded = test::record(problem);
    QCOMPARE(recorded.result.outcome, Outcome::Solved);
    const Graph& graph = *problem->graph;
    int embeddings = 0;
    for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
      const auto layer = graph::layerShape(graph, n);
      if (!layer || layer->kind != graph::LayerKind::Embedding) continue;
      ++embeddings;
      QCOMPARE(recorded.result.solution->strategies[n.index()]->strategy, rules::Strategy::Replicated);
      const auto refused = rules::layerStrategies(graph, n, *layer, problem->context).refused;
      QVERIFY(!refused.empty());
      QCOMPARE(refused.front().reason, std::string("257 vocabulary rows do not divide by 2 ranks"));
    }
    QCOMPARE(embeddings, 1);
    QVERIFY(check(*problem, *recorded.result.solution).empty());
  }
};

QTEST_APPLESS_MAIN(TestReference)
#include "tst_reference.moc"
