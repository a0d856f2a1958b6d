#include "graph/graph_builder.h"
#include "solve/candidates/candidates.h"
#include "solve/checker.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

/// `count` linear layers with one input, then the operators that join them.
std::shared_ptr<const graph::Graph> sideBySide(int count, bool isPairwise) {
  graph::GraphBuilder builder("independent");
  const graph::TensorType type{graph::DType::Float32, {2, 4, 8}};
  const graph::ValueId x = builder.addInput("x", type);
  graph::ValueList made;
  for (int i = 0; i < count; ++i) {
    const std::string path = fmt::format("layer{}", i);
    const auto weight = builder.addParameter(path + ".weight", {graph::DType::Float32, {8, 8}}, builder.scope(path));
    made.push_back(builder.addCall("aten::linear", {x, weight, graph::Argument{}}, {type}, builder.scope(path))[0]);
  }
  graph::ValueId sum = made.front();
  if (isPairwise) {
    for (int i = 1; i < count; ++i)
      sum = builder.addCall("aten::add.Tensor", {sum, made[static_cast<std::size_t>(i)], std::int64_t{1}}, {type})[0];
  } else {
    sum = builder.addCall("aten::wants_all_whole", {made}, {type})[0];
  }
  builder.addOutput("y", builder.addCall("aten::relu", {sum}, {type})[0]);
  return std::make_shared<const graph::Graph>(*std::move(builder).finish());
}

/// Random pins, candidate set, sequence parallelism, switched-off rules and redistributions for the graph.
std::shared_ptr<const Problem> randomProblem(std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919);
  test::RandomGraph graphs(seed);
  const auto graph = graphs.build(3 + static_cast<int>(random() % 8));
  auto problem = std::make_shared<Problem>(*test::problemOf(graph, 2));
  problem->context.candidateSet = random() % 2 == 0 ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
  problem->context.sequenceParallel = static_cast<rules::SequenceParallel>(random() % 3);
  const auto anyName = [&] { return graph->values[random() % graph->values.size()].name; };
  for (auto left = random() % 3; left > 0; --left) {
    const std::string wanted = std::vector<std::string>{"R", "S(2)", "S(1)", "S(0)"}[random() % 4];
    if (auto pin = Pin::parse(fmt::format("{}{}={}", anyName(), random() % 3 == 0 ? "!" : "", wanted)))
      problem->pins.push_back(*pin);
  }
  if (random() % 3 == 0) {
    for (NodeId n : idRange<NodeId>(graph->nodes.size())) {
      if (!graph::layerShape(*graph, n) || random() % 2 == 0) continue;
      const std::string wanted = std::vector<std::string>{"row", "column", "replicated"}[random() % 3];
      problem->pins.push_back(
          *Pin::parse(fmt::format("{}{}={}", graph::layerName(*graph, n), random() % 2 == 0 ? "!" : "", wanted)));
    }
  }
  if (random() % 5 == 0)
    problem->rulesOff = {"*" + std::vector<std::string>{"add", "relu", "mean", "linear"}[random() % 4] + "*"};
  if (random() % 5 == 0) problem->redistributable = {anyName()};
  while (!problem->checkPins()) {  // drops demands that match nothing in this graph
    if (!problem->redistributable.empty()) {
      problem->redistributable.clear();
    } else if (!problem->rulesOff.empty()) {
      problem->rulesOff.clear();
    } else {
      problem->pins.pop_back();
    }
  }
  return problem;
}

/// The named demands alone have no solution either.
bool isImpossible(Problem problem, const Core& core) {
  std::vector<Pin> pins;
  std::vector<std::string> rulesOff;
  for (const Constraint& constraint : core.constraints) {
    for (const Pin& pin : problem.pins) {
      if (constraint.kind == ConstraintKind::Pin && pin.text == constraint.lift) pins.push_back(pin);
    }
    if (constraint.kind == ConstraintKind::RuleOff) rulesOff.push_back(*constraint.lift);
  }
  problem.pins = std::move(pins);
  problem.rulesOff = std::move(rulesOff);
  return test::solvedBy(Engine::Reference, problem).outcome == Outcome::NoSolution;
}

}  // namespace

class TestLearning : public QObject {
  Q_OBJECT
 private slots:
  void goesBackToTheCauseOfTheConflict_data() {
    QTest::addColumn<bool>("isPairwise");
    QTest::addColumn<QString>("pin");
    QTest::newRow("an operator that needs replicated operands") << false << "";
    QTest::newRow("an operator that needs replicated operands, and a pin") << false << "relu_0=S(2)";
    QTest::newRow("pairwise sums, and a pin") << true << "relu_0=R";
    QTest::newRow("pairwise sums, and a pin without solution") << true << "relu_0=S(1)";
  }
  void goesBackToTheCauseOfTheConflict() {
    QFETCH(bool, isPairwise);
    QFETCH(QString, pin);
    std::vector<std::string> pins;
    if (!pin.isEmpty()) pins.push_back(pin.toStdString());
    const auto problem = test::problemOf(sideBySide(14, isPairwise), 2, pins);
    const SolveResult learning = test::solvedBy(Engine::Learning, *problem);
    const SolveResult reference = test::solvedBy(Engine::Reference, *problem);
    QCOMPARE(learning.outcome, reference.outcome);
    // A search without a solution backtracks 2^15 - 1 times.
    const auto undos = [](const SolveResult& result) { return result.stats.conflicts + result.stats.backtracks; };
    QCOMPARE(undos(reference),
             reference.outcome == Outcome::NoSolution ? std::uint64_t{32'767} : std::uint64_t{32'766});
    QVERIFY2(undos(learning) <= 50, qPrintable(QString::number(undos(learning))));
    QVERIFY(learning.stats.tries <= 300);
  }

  void needsAtMostThreeTriesForEachNodeOfTheExplodingSample_data() {
    QTest::addColumn<int>("layers");
    for (int layers : {1, 2, 7, 126}) QTest::addRow("%d layers", layers) << layers;
  }
  void needsAtMostThreeTriesForEachNodeOfTheExplodingSample() {
    QFETCH(int, layers);
    const auto problem = test::problemOf(test::llamaGraph({.layers = layers, .hasLoss = false}), 2, {"lm_head=row"});
    const auto result = test::solvedBy(Engine::Learning, *problem);
    QCOMPARE(result.outcome, Outcome::NoSolution);
    const auto nodes = problem->graph->nodes.size();
    QVERIFY2(result.stats.tries <= 3 * nodes,
             qPrintable(QString("%1 tries, %2 nodes").arg(result.stats.tries).arg(nodes)));
    QCOMPARE(result.core.constraints.size(), std::size_t{1});
    const Constraint& cause = result.core.constraints.front();
    QCOMPARE(cause.kind, ConstraintKind::Pin);
    QCOMPARE(cause.lift, std::optional<std::string>("lm_head=row"));
    QVERIFY(result.core.text().find("its input split on its last dimension") != std::string::npos);
    QVERIFY(!result.causes.empty());
  }

  void neverBacktracksInAModelWithoutConflicts() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 3}), 2);
    const auto learning = test::record(problem, {}, {}, Engine::Learning);
    const auto reference = test::record(problem);
    QVERIFY(test::eventsOf(*learning.trace) == test::eventsOf(*reference.trace));
  }

  void findsTheSolutionOfReferenceInNoMoreTries() {
    const test::Seeds seeds(10'000);
    std::uint64_t withoutSolution = 0, fewer = 0, withConflicts = 0;
    for (const std::uint64_t seed : seeds) {
      const auto problem = randomProblem(seed);
      const SolveResult reference = test::solvedBy(Engine::Reference, *problem);
      const SolveResult learning = test::solvedBy(Engine::Learning, *problem);
      const QByteArray where = QString("seed %1\n%2").arg(seed).arg(graph::toText(*problem->graph).c_str()).toUtf8();
      QVERIFY2(learning.outcome == reference.outcome, where);
      QVERIFY2(learning.stats.tries <= reference.stats.tries, where);
      if (reference.solution) QVERIFY2(test::sameSolution(*learning.solution, *reference.solution), where);
      if (learning.solution) QVERIFY2(check(*problem, *learning.solution).empty(), where);
      withoutSolution += reference.outcome == Outcome::NoSolution;
      withConflicts += reference.stats.conflicts > 0;
      fewer += learning.stats.tries < reference.stats.tries;
      if (reference.outcome == Outcome::NoSolution) {
        QVERIFY2(isImpossible(*problem, learning.core), where);
        QVERIFY2(!learning.causes.empty(), where);
      }
    }
    qInfo("%llu graphs: %llu with conflicts, %llu without solution, %llu in fewer tries",
          (unsigned long long)seeds.count(), (unsigned long long)withConflicts, (unsigned long long)withoutSolution,
          (unsigned long long)fewer);
    QVERIFY(!seeds.isFull() || (withoutSolution > seeds.count() / 20 && fewer > seeds.count() / 50));
  }

  void recordsATraceThatCursorsAndFilesUnderstand() {
    for (const std::uint64_t seed : test::Seeds(400)) {
      const auto problem = randomProblem(seed);
      const auto recorded = test::record(problem, {}, {}, Engine::Learning);
      const auto events = test::eventsOf(*recorded.trace);
      std::vector<std::uint32_t> assigned;
      for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        if (event.type == EventType::Try) assigned.push_back(event.node);
        if (event.type != EventType::Backtrack) continue;
        const auto before = assigned.size();
        while (!assigned.empty() && assigned.back() >= event.target) assigned.pop_back();
        QCOMPARE(std::size_t{event.detail}, before - assigned.size());
        QVERIFY(i + 1 < events.size() && events[i + 1].type == EventType::Try && events[i + 1].node == event.target);
      }
      Cursor cursor(recorded.trace);
      cursor.seek(recorded.trace->size());
      QCOMPARE(cursor.assignedCount(), assigned.size());
      for (ValueId v : idRange<ValueId>(problem->graph->values.size())) {
        if (recorded.result.solution) QVERIFY(cursor.placementOf(v) == recorded.result.solution->of(v));
      }
    }
  }

  /// Only the culprits have the placements of the conflict; all other values are random.
  void namesSufficientCulprits() {
    std::mt19937_64 random(test::seed(7));
    int replayed = 0;
    for (const std::uint64_t seed : test::Seeds(1500)) {
      const auto problem = randomProblem(seed);
      const auto recorded = test::record(problem);
      Cursor cursor(recorded.trace);
      for (auto at = cursor.next(EventType::Conflict); at; at = cursor.next(EventType::Conflict)) {
        cursor.seek(*at);
        const ConflictRecord& conflict = recorded.trace->conflict(ConflictId(cursor.lastEvent()->detail));
        const auto reads = recorded.trace->variables().reads(conflict.node);
        for (int round = 0; round < 8; ++round) {
          std::vector<Placement> placements;
          for (const Read& read : reads) {
            const bool isCulprit =
                std::find(conflict.culprits.begin(), conflict.culprits.end(), read.value) != conflict.culprits.end();
            const auto& shape = problem->graph->shapeOf(read.value);
            Placement drawn = random() % 3 == 0 || shape.empty()
                                  ? Placement()
                                  : Placement::split(static_cast<int>(random() % shape.size()));
            if (!drawn.isReplicated() && !drawn.localShape(shape, 2)) drawn = Placement();
            placements.push_back(isCulprit ? *cursor.placementOf(read.value) : drawn);
          }
          const auto again = candidatesOf(*problem, recorded.trace->variables(), conflict.node, placements);
          QVERIFY2(again.open.empty(), qPrintable(QString("seed %1: %2").arg(seed).arg(conflict.reason.c_str())));
          ++replayed;
        }
        if (replayed > 200'000) break;
      }
    }
    qInfo("%d conflicts replayed", replayed);
    QVERIFY(replayed > static_cast<int>(test::rounds(1000)));
  }

  void reportsLearnedFailures() {
    int said = 0;
    for (const std::uint64_t seed : test::Seeds(2000)) {
      const auto recorded = test::record(randomProblem(seed), {}, {}, Engine::Learning);
      for (std::size_t i = 0; i < recorded.trace->conflictCount(); ++i) {
        const std::string& reason = recorded.trace->conflict(ConflictId(i)).reason;
        const auto at = reason.find(" here: ");
        if (at == std::string::npos) continue;
        ++said;
        QVERIFY2(reason.starts_with('`') && reason.ends_with('.') && reason[at + 7] == '`', reason.c_str());
      }
    }
    QVERIFY(said > 0);
  }

  void namesASwitchedOffRuleAsTheCause() {
    Problem problem = *test::problemOf(test::llamaGraph({.layers = 1, .hasLoss = false}), 2,
                                       {"model.layers.0.self_attn.q_proj=column"});
    problem.rulesOff = {"*attention*"};
    QVERIFY(problem.checkPins());
    const SolveResult result = test::solvedBy(Engine::Learning, problem);
    QCOMPARE(result.outcome, Outcome::NoSolution);
    QVERIFY(isImpossible(problem, result.core));
    QVERIFY(result.core.text().find("the rule of `aten::scaled_dot_product_attention` is switched off") !=
            std::string::npos);
    problem.pins.clear();
    const SolveResult free = test::solvedBy(Engine::Learning, problem);
    QVERIFY(free.solution && check(problem, *free.solution).empty());
  }

  void usesARedistributionThatIsAllowed() {
    Problem problem = *test::problemOf(test::llamaGraph({.layers = 2, .hasLoss = false}), 2, {"lm_head=row"});
    problem.redistributable = {"mul_22"};
    QVERIFY(problem.checkPins());
    for (const Engine engine : {Engine::Learning, Engine::Reference}) {
      const SolveResult result = test::solvedBy(engine, problem);
      QCOMPARE(result.outcome, Outcome::Solved);
      QVERIFY(check(problem, *result.solution).empty());
      const ValueId cut = problem.graph->findValue("mul_22");
      QCOMPARE(result.solution->of(cut), Placement::split(2));
      QCOMPARE(result.solution->computedAs, (std::map<ValueId, Placement>{{cut, Placement()}}));
      problem.redistributable.clear();
      QVERIFY(!check(problem, *result.solution).empty());
      problem.redistributable = {"mul_22"};
    }
  }
};

QTEST_APPLESS_MAIN(TestLearning)
#include "tst_learning.moc"
