#include "solve/checker.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <map>
#include <set>

using namespace cleave;
using namespace cleave::solve;

namespace {

/// The state after each event, computed without snapshots.
class StraightRun {
 public:
  void apply(StepId index, const Event& event) {
    if (event.type == EventType::Try) m_assigned[event.node] = {event.detail, index};
    if (event.type == EventType::Backtrack) m_assigned.erase(m_assigned.lower_bound(event.target), m_assigned.end());
  }
  const std::map<std::uint32_t, std::pair<std::uint32_t, StepId>>& assigned() const { return m_assigned; }

 private:
  std::map<std::uint32_t, std::pair<std::uint32_t, StepId>> m_assigned;
};

std::shared_ptr<const Trace> exploding(std::int64_t layers) {
  return test::record(test::problemOf(test::llamaGraph({.layers = layers, .hasLoss = false}), 2, {"lm_head=row"}))
      .trace;
}

void compareState(const Cursor& cursor, const StraightRun& run, std::size_t nodes) {
  QCOMPARE(cursor.assignedCount(), run.assigned().size());
  for (std::uint32_t n = 0; n < nodes; ++n) {
    if (!cursor.trace().variables().isStep(NodeId(n))) continue;
    const auto found = run.assigned().find(n);
    const bool isAssigned = found != run.assigned().end();
    QCOMPARE(cursor.choiceOf(NodeId(n)).has_value(), isAssigned);
    if (!isAssigned) continue;
    QCOMPARE(cursor.choiceOf(NodeId(n))->raw(), found->second.first);
    QCOMPARE(*cursor.assignedAt(NodeId(n)), found->second.second);
  }
}

}  // namespace

class TestCursor : public QObject {
  Q_OBJECT
 private slots:
  void seekEqualsAStraightRun_data() {
    QTest::addColumn<quint64>("seed");
    QTest::addColumn<Engine>("engine");
    for (const Engine engine : {Engine::Reference, Engine::Learning}) {
      for (const std::uint64_t seed : test::Seeds(20))
        QTest::newRow(fmt::format("{}, seed {}", toText(engine), seed).c_str()) << quint64(seed) << engine;
    }
  }
  void seekEqualsAStraightRun() {
    QFETCH(quint64, seed);
    QFETCH(Engine, engine);
    test::RandomGraph generator(seed);
    const auto graph = generator.build(static_cast<int>(generator.pick({4, 8, 12, 16})));
    const auto trace = test::record(test::problemOf(graph, 2), {}, {}, engine).trace;
    const auto events = test::eventsOf(*trace);
    std::mt19937_64 random(seed);
    Cursor cursor(trace);
    for (int i = 0; i < 40; ++i) {
      const StepId target = random() % (events.size() + 1);
      StraightRun run;
      for (StepId s = 0; s < target; ++s) run.apply(s, events[s]);
      cursor.seek(target);
      QCOMPARE(cursor.step(), target);
      compareState(cursor, run, graph->nodes.size());
    }
  }

  void seeksAcrossManySnapshots() {
    const auto trace = exploding(6);
    const auto events = test::eventsOf(*trace);
    QVERIFY(events.size() > 500'000);
    std::mt19937_64 random(test::seed(7));
    std::vector<StepId> targets;
    for (int i = 0; i < 4; ++i) targets.push_back(random() % events.size());
    Cursor jumping(trace), other(trace);
    for (const StepId target : targets) {
      StraightRun run;
      for (StepId s = 0; s < target; ++s) run.apply(s, events[s]);
      jumping.seek(target);
      compareState(jumping, run, trace->problem()->graph->nodes.size());
      other.seek(target + 3);
      other.seek(target);
      QVERIFY(other.changedSince(jumping).empty());
    }
    jumping.seek(~StepId{0});
    QCOMPARE(jumping.step(), trace->size());
  }

  void listsExactlyTheNodesThatDiffer() {
    const auto trace = exploding(2);
    Cursor a(trace), b(trace);
    std::mt19937_64 random(test::seed(3));
    int differing = 0;
    for (int i = 0; i < 50; ++i) {
      a.seek(random() % trace->size());
      b.seek(random() % trace->size());
      std::vector<NodeId> expected;
      for (NodeId n : trace->variables().deciders()) {
        if (a.choiceOf(n) != b.choiceOf(n)) expected.push_back(n);
      }
      QVERIFY(a.changedSince(b) == expected);
      differing += expected.empty() ? 0 : 1;
    }
    QVERIFY(differing > 25);
  }

  void findsEventsForwardsAndBackwards() {
    const auto trace = exploding(3);
    const auto events = test::eventsOf(*trace);
    std::mt19937_64 random(test::seed(11));
    for (int i = 0; i < 30; ++i) {
      Cursor cursor(trace);
      cursor.seek(random() % (events.size() + 1));
      for (const auto type : {EventType::Conflict, EventType::Backtrack, EventType::Exhausted}) {
        std::optional<StepId> next, previous;
        for (StepId s = cursor.step(); s < events.size() && !next; ++s) {
          if (events[s].type == type) next = s + 1;
        }
        for (StepId s = cursor.step() > 0 ? cursor.step() - 1 : 0; s-- > 0 && !previous;) {
          if (events[s].type == type) previous = s + 1;
        }
        QCOMPARE(cursor.next(type), next);
        QCOMPARE(cursor.previous(type), previous);
      }
    }
  }

  void findsTheChangesOfANode() {
    const auto trace = exploding(2);
    std::vector<StepId> changes;
    const auto events = test::eventsOf(*trace);
    const NodeId node = trace->problem()->graph->value(trace->problem()->graph->findValue("linear_5")).producer;
    Cursor cursor(trace);
    bool wasAssigned = false;
    StepId assignedAt = 0;
    for (StepId s = 1; s <= events.size(); ++s) {
      cursor.seek(s);
      const auto at = cursor.assignedAt(node);
      if (at.has_value() != wasAssigned || (at && *at != assignedAt)) changes.push_back(s);
      wasAssigned = at.has_value();
      assignedAt = at.value_or(0);
    }
    std::vector<StepId> walked;
    cursor.seek(0);
    while (const auto next = cursor.nextChangeOf(node)) {
      walked.push_back(*next);
      cursor.seek(*next);
    }
    QCOMPARE(walked, changes);
    cursor.seek(trace->size());
    std::vector<StepId> back;
    while (const auto previous = cursor.previousChangeOf(node)) {
      back.insert(back.begin(), *previous);
      cursor.seek(*previous);
    }
    QCOMPARE(back, changes);
  }

  void stopsAtBreakpoints() {
    const auto trace = exploding(2);
    const Graph& graph = *trace->problem()->graph;
    Cursor cursor(trace);
    // Operator and scope.
    auto at = cursor.next(Breakpoint{.type = EventType::Try, .op = "linear", .scopePrefix = "model.layers.1.mlp"});
    QVERIFY(at.has_value());
    cursor.seek(*at);
    QCOMPARE(graph::layerName(graph, NodeId(cursor.lastEvent()->node)), std::string("model.layers.1.mlp.gate_proj"));
    // A prefix names whole path components.
    QVERIFY(!cursor.next(Breakpoint{.scopePrefix = "model.layers.1.ml"}));
    // A placement, and the third hit.
    cursor.seek(0);
    const Breakpoint split{.placement = Placement::split(2)};
    cursor.seek(*cursor.next(split));
    QCOMPARE(*cursor.placementOf(graph.node(NodeId(cursor.lastEvent()->node)).results[0]), Placement::split(2));
    cursor.seek(0);
    const auto third = cursor.next(Breakpoint{.placement = Placement::split(2), .skipHits = 2});
    for (int i = 0; i < 3; ++i) cursor.seek(*cursor.next(split));
    QCOMPARE(cursor.step(), *third);
    // Deep backtracks.
    cursor.seek(0);
    cursor.seek(*cursor.next(Breakpoint{.minUndone = 50}));
    QCOMPARE(cursor.lastEvent()->type, EventType::Backtrack);
    QVERIFY(cursor.lastEvent()->detail >= 50);
    // A backtrack to one node.
    const NodeId target(cursor.lastEvent()->target);
    cursor.seek(trace->size());
    cursor.seek(*cursor.previous(Breakpoint{.type = EventType::Backtrack, .node = target}));
    QCOMPARE(cursor.lastEvent()->target, target.raw());
    // Several breakpoints, some of them disabled.
    cursor.seek(0);
    Breakpoint off{.type = EventType::Visit, .enabled = false};
    QCOMPARE(cursor.next(std::vector{off, Breakpoint{.type = EventType::Conflict}}), cursor.next(EventType::Conflict));
    QVERIFY(!cursor.next(std::vector{off}));
  }

  void placesParametersWithTheirLayer() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.isTied = true}), 2)).trace;
    const Graph& graph = *trace->problem()->graph;
    Cursor cursor(trace);
    const ValueId weight = graph.findValue("model.layers.0.self_attn.o_proj.weight");
    QVERIFY(!cursor.placementOf(weight));
    cursor.seek(trace->size());
    QCOMPARE(*cursor.placementOf(weight), Placement::split(1));
    QCOMPARE(*cursor.placementOf(graph.findValue("model.embed_tokens.weight")), Placement::split(0));
    QCOMPARE(*cursor.placementOf(graph.findValue("model.norm.weight")), Placement());
  }

  void endsWithTheSolution() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto recorded = test::record(problem);
    Cursor cursor(recorded.trace);
    cursor.seek(recorded.trace->size());
    for (ValueId v : idRange<ValueId>(problem->graph->values.size())) {
      QVERIFY(cursor.placementOf(v) == recorded.result.solution->of(v));
    }
  }

  void timelineCountsEveryEventOnce_data() {
    QTest::addColumn<int>("layers");
    QTest::addColumn<int>("buckets");
    QTest::newRow("fine") << 1 << 5000;
    QTest::newRow("single events") << 3 << 777;
    QTest::newRow("blocks") << 6 << 40;
    QTest::newRow("one bucket") << 6 << 1;
  }
  void timelineCountsEveryEventOnce() {
    QFETCH(int, layers);
    QFETCH(int, buckets);
    const auto trace = exploding(layers);
    const auto stats = trace->stats();
    const auto all = timeline(*trace, 0, trace->size(), static_cast<std::size_t>(buckets));
    QCOMPARE(all.size(), static_cast<std::size_t>(buckets));
    std::uint64_t tries = 0, conflicts = 0, backtracks = 0;
    std::uint32_t deepest = 0;
    for (const TimelineBucket& b : all) {
      tries += b.tries;
      conflicts += b.conflicts;
      backtracks += b.backtracks;
      deepest = std::max(deepest, b.maxDepth);
      QVERIFY(b.minDepth <= b.maxDepth);
    }
    QCOMPARE(tries, stats.tries);
    QCOMPARE(conflicts, stats.conflicts);
    QCOMPARE(backtracks, stats.backtracks);
    QCOMPARE(std::size_t{deepest} + 1, trace->variables().deciders().size());
    QVERIFY(timeline(*trace, 5, 5, 3).size() == 3);
  }

  void returnsNothingForUnknownIds() {
    Cursor cursor(exploding(1));
    cursor.seek(100);
    for (const NodeId node : {NodeId(), NodeId(1'000'000)}) {
      QVERIFY(!cursor.choiceOf(node) && !cursor.assignedAt(node) && !cursor.nextChangeOf(node) &&
              !cursor.previousChangeOf(node));
      QVERIFY(!cursor.next(Breakpoint{.type = EventType::Solution, .node = node}));
    }
    QVERIFY(!cursor.placementOf(ValueId()));
  }

  void describesEveryKindOfEvent() {
    const auto trace = exploding(1);
    std::set<EventType> kinds;
    for (const Event& event : test::eventsOf(*trace)) {
      kinds.insert(event.type);
      const std::string sentence = describe(*trace, event);
      QVERIFY(sentence.size() > 10);
      QVERIFY(sentence.ends_with('.'));
    }
    QCOMPARE(kinds, (std::set{EventType::Visit, EventType::Try, EventType::Conflict, EventType::Backtrack,
                              EventType::Exhausted}));
  }
};

QTEST_APPLESS_MAIN(TestCursor)
#include "tst_cursor.moc"
