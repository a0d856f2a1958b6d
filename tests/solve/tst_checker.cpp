#include "graph/graph_builder.h"
#include "solve/checker.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

/// Tries every combination of strategies for layers and claims for other nodes, and checks each at the end. It shares
/// no code with the engines.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : m_problem(problem), m_graph(*problem.graph) {
    m_solution.placements.resize(m_graph.values.size());
    m_solution.strategies.resize(m_graph.nodes.size());
  }
  bool hasSolution() { return from(0); }

 private:
  bool from(std::size_t index) {
    if (index == m_graph.nodes.size()) return check(m_problem, m_solution).empty();
    const NodeId n(index);
    const graph::Node& node = m_graph.node(n);
    if (node.kind != graph::NodeKind::Call) return from(index + 1);
    if (const auto layer = graph::layerShape(m_graph, n)) return tryLayer(index, *layer);
    std::vector<Placement> operands;
    for (ValueId v : graph::operandsOf(node)) operands.push_back(m_solution.of(v));
    const auto verdict = rules::applyRule({m_graph, n, operands, m_problem.context.worldSize});
    if (std::holds_alternative<rules::Conflict>(verdict)) return false;
    for (const rules::Claim& claim : std::get<std::vector<rules::Claim>>(verdict)) {
      for (std::size_t i = 0; i < node.results.size(); ++i)
        m_solution.placements[node.results[i].index()] = claim.results[i];
      if (from(index + 1)) return true;
    }
    return false;
  }

  bool tryLayer(std::size_t index, const graph::LayerShape& layer) {
    const auto before = m_solution.placements;
    for (const auto& option : rules::layerStrategies(m_graph, NodeId(index), layer, m_problem.context).offered) {
      m_solution.strategies[index] = option;
      m_solution.placements[m_graph.node(NodeId(index)).results[0].index()] = option.result;
      if (layer.weight.isValid()) m_solution.placements[layer.weight.index()] = option.weight;
      if (layer.bias.isValid()) m_solution.placements[layer.bias.index()] = option.bias;
      if (from(index + 1)) return true;
      m_solution.placements = before;
    }
    return false;
  }

  const Problem& m_problem;
  const Graph& m_graph;
  Solution m_solution;
};

}  // namespace

class TestChecker : public QObject {
  Q_OBJECT
 private slots:
  void agreesWithBruteForceOnRandomGraphs() {
    int solved = 0, unsolved = 0;
    const test::Seeds seeds(250, 1000);
    for (const std::uint64_t seed : seeds) {
      test::RandomGraph generator(seed);
      const auto graph = generator.build(static_cast<int>(generator.pick({3, 4, 5, 7})));
      std::vector<std::string> pins;
      std::vector<std::string> layers;
      for (NodeId n : idRange<NodeId>(graph->nodes.size())) {
        if (graph::layerShape(*graph, n)) layers.push_back(graph::layerName(*graph, n));
      }
      const char* const words[] = {"row", "column", "replicated"};
      for (std::int64_t i = generator.pick({0, 1, 1, 2}); i > 0 && !layers.empty(); --i) {
        const auto& layer = layers[static_cast<std::size_t>(generator.pick({0, 1, 2, 3, 4, 5})) % layers.size()];
        pins.push_back(
            fmt::format("{}{}{}", layer, generator.pick({0, 0, 1}) ? "!=" : "=", words[generator.pick({0, 1, 2})]));
      }
      const auto sequence = generator.pick({0, 0, 1}) ? rules::SequenceParallel::On : rules::SequenceParallel::Off;
      const auto problem = test::problemOf(graph, 2, pins, sequence);
      const auto recorded = test::record(problem);
      const std::string what = fmt::format("seed {}\n{}pins {}", seed, graph::toText(*graph), fmt::join(pins, " "));
      QVERIFY2(recorded.result.outcome != Outcome::Stopped, what.c_str());
      const bool isSolved = recorded.result.outcome == Outcome::Solved;
      if (isSolved) {
        const auto violations = check(*problem, *recorded.result.solution);
        QVERIFY2(violations.empty(), (what + (violations.empty() ? "" : "\n" + violations.front())).c_str());
        ++solved;
      } else {
        QVERIFY2(!recorded.result.causes.empty(), what.c_str());
        QVERIFY2(!BruteForce(*problem).hasSolution(), what.c_str());
        ++unsolved;
      }
    }
    qInfo("%d solved, %d without solution", solved, unsolved);
    QVERIFY(!seeds.isFull() || (solved > 30 && unsolved > 30));
  }

  void refusesEveryChangeOfOnePlacement() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 1}), 2);
    const Solution good = *test::record(problem).result.solution;
    QVERIFY(check(*problem, good).empty());
    const Variables variables(*problem);
    for (ValueId v : idRange<ValueId>(problem->graph->values.size())) {
      for (const Placement& other : {Placement(), Placement::split(0), Placement::split(2), Placement::split(7)}) {
        if (good.of(v) == other) continue;
        Solution bad = good;
        bad.placements[v.index()] = other;
        // A result without readers, of an operator with several claims, may change. This graph has no such value.
        QVERIFY2(!check(*problem, bad).empty(), problem->graph->value(v).name.c_str());
      }
    }
  }

  void refusesForeignStrategies() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 1}), 2);
    const Solution good = *test::record(problem).result.solution;
    for (std::size_t n = 0; n < good.strategies.size(); ++n) {
      Solution bad = good;
      if (bad.strategies[n]) {
        rules::LayerStrategy other = *bad.strategies[n];
        other.strategy =
            other.strategy == rules::Strategy::Replicated ? rules::Strategy::Row : rules::Strategy::Replicated;
        bad.strategies[n] = other;
      } else {
        bad.strategies[n] = rules::LayerStrategy{};
      }
      QVERIFY(!check(*problem, bad).empty());
      bad.strategies[n].reset();
      QCOMPARE(check(*problem, bad).empty(), !good.strategies[n].has_value());
    }
  }

  void refusesWhatNeedsMoreThanTheBudget() {
    auto problem = std::make_shared<Problem>(*test::problemOf(test::llamaGraph({.layers = 1}), 2));
    const Solution solution = *test::record(problem).result.solution;
    const std::int64_t needed = costOf(*problem, solution).bytes();
    problem->cost.memoryBudget = needed;
    QVERIFY(check(*problem, solution).empty());
    problem->cost.memoryBudget = needed - 1;
    const auto violations = check(*problem, solution);
    QCOMPARE(violations.size(), std::size_t(1));
    QVERIFY2(violations[0].find("1 B more than the memory budget of") != std::string::npos, violations[0].c_str());
  }

  /// A large model with many redistributed values: their patterns are resolved once, not for each value.
  void judgesManyRedistributedValues() {
    constexpr int kValues = 30'000;
    graph::GraphBuilder builder("chain");
    ValueId x = builder.addInput("x", {graph::DType::Float32, {4, 8}});
    for (int i = 0; i < kValues; ++i) x = builder.addCall("aten::neg", {x}, {{graph::DType::Float32, {4, 8}}})[0];
    builder.addOutput("y", x);
    Problem problem;
    problem.graph = std::make_shared<const graph::Graph>(*std::move(builder).finish());
    problem.context.worldSize = 2;
    problem.redistributable = {"*"};
    Solution solution;
    solution.placements.resize(problem.graph->values.size());
    solution.strategies.resize(problem.graph->nodes.size());
    for (ValueId v : idRange<ValueId>(problem.graph->values.size())) {
      if (problem.graph->node(problem.graph->value(v).producer).kind != graph::NodeKind::Call) continue;
      if (v.index() % 2 == 0) {  // computed as split from a split value, then gathered
        solution.computedAs[v] = Placement::split(0);
      } else {  // computed as replicated from a replicated value, then cut
        solution.computedAs[v] = Placement();
        solution.placements[v.index()] = Placement::split(0);
      }
    }
    const auto violations = check(problem, solution);
    QVERIFY2(violations.empty(), violations.empty() ? "" : violations[0].c_str());
    problem.redistributable = {"neg_1"};
    QVERIFY(!check(problem, solution).empty());
  }

  void refusesSolutionsOfAnotherGraph() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 1}), 2);
    const auto other = test::problemOf(test::llamaGraph({.layers = 2}), 2);
    const auto violations = check(*problem, *test::record(other).result.solution);
    QCOMPARE(violations.size(), std::size_t{1});
  }

  void refusesSizesThatDoNotDivide() {
    const auto two = test::problemOf(test::llamaGraph({.layers = 1}), 2);
    const auto three = test::problemOf(two->graph, 3);
    const auto violations = check(*three, *test::record(two).result.solution);
    QVERIFY(!violations.empty());
    QVERIFY(violations.size() <= 32);
  }

  void refusesSolutionsAgainstAPin() {
    const auto free = test::problemOf(test::llamaGraph({.layers = 1}), 2);
    const auto pinned = test::problemOf(free->graph, 2, {"lm_head=replicated"});
    const auto violations = check(*pinned, *test::record(free).result.solution);
    QCOMPARE(violations.size(), std::size_t{1});
    QVERIFY(violations.front().find("lm_head=replicated") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestChecker)
#include "tst_checker.moc"
