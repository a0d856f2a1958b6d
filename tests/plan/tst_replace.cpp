/// The rank program: what is refused, and what training adds to the program for a forward pass.
#include "plan/build/lowering.h"
#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"
#include "plan/build/steps.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

#include "graph/arguments.h"
#include "graph/operators.h"

#include <set>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// The same problem for training; its first result is summed to a loss.
std::shared_ptr<solve::Problem> withLoss(const solve::Problem& problem) {
  auto trained = std::make_shared<solve::Problem>(problem);
  std::string text = graph::toText(*problem.graph);
  const std::string result = problem.graph->value(problem.graph->outputs.front().value).name;
  text.resize(text.rfind("return"));
  trained->graph = parsed(text + fmt::format("loss: f32[] = aten::sum({}, None)\nreturn loss=loss\n", result));
  trained->cost.isTraining = true;
  return trained;
}

/// Compares the program for training with the one for a forward pass, node by node.
class Comparison {
 public:
  Comparison(const Graph& training, const Graph& inference)
      : m_training(training), m_inference(inference), m_same(training.values.size()) {}

  QByteArray difference() {
    for (NodeId id : idRange<NodeId>(m_training.nodes.size())) {
      const auto own = graph::parallelOp(m_training.opName(m_training.node(id)));
      const bool isAdded = own == graph::ParallelOp::GradAllReduce || own == graph::ParallelOp::Same;
      if (isAdded ? !isIdentity(id, *own) : !isCopy(id))
        return m_training.value(m_training.node(id).results[0]).name.c_str();
    }
    if (m_next != m_inference.nodes.size()) return "the program for training has fewer nodes";
    return m_training.outputs.size() == m_inference.outputs.size() ? QByteArray() : QByteArray("other outputs");
  }
  bool addsNodes() const { return m_training.nodes.size() > m_inference.nodes.size(); }

 private:
  bool isIdentity(NodeId id, graph::ParallelOp op) {
    const graph::Node& node = m_training.node(id);
    const ValueId operand = graph::operandsOf(node)[0], result = node.results[0];
    m_same[result.index()] = m_same[operand.index()];
    if (m_training.value(operand).type != m_training.value(result).type) return false;
    if (op == graph::ParallelOp::GradAllReduce)
      return m_summed.insert(operand).second && !m_training.value(result).users.empty();
    const std::string& name = m_inference.value(m_same[operand.index()]).name;
    return m_training.value(result).name == name && m_training.value(operand).users.size() == 1;
  }

  bool isCopy(NodeId id) {
    if (m_next == m_inference.nodes.size()) return false;
    const graph::Node& node = m_training.node(id);
    const graph::Node& other = m_inference.nodes[m_next++];
    const std::string op(m_training.opName(node) == graph::kGatherInput ? graph::kAllGather : m_training.opName(node));
    if (node.kind != other.kind || op != m_inference.opName(other) || node.origin != other.origin) return false;
    if (node.results.size() != other.results.size() || node.args.size() != other.args.size()) return false;
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (m_training.value(node.results[i]).type != m_inference.value(other.results[i]).type) return false;
      m_same[node.results[i].index()] = other.results[i];
    }
    return renumbered(node.args) == other.args;
  }

  std::vector<graph::Argument> renumbered(std::vector<graph::Argument> args) const {
    graph::changeOperands(args, [&](ValueId value) { return m_same[value.index()]; });
    return args;
  }

  const Graph& m_training;
  const Graph& m_inference;
  std::vector<ValueId> m_same;  ///< by value of the program for training
  std::set<ValueId> m_summed;
  std::size_t m_next = 0;
};

}  // namespace

class TestReplace : public QObject {
  Q_OBJECT
 private slots:
  void oneRankRunsTheAtenGraph() {
    const Plan plan = planned(requestFor(kDecoder, context(1), {}));
    QCOMPARE(programText(*plan.program), programText(*plan.graph));
    QVERIFY(plan.collectives.empty());
  }

  void refusesASolutionThatDoesNotFit() {
    PlanRequest request = requestFor(kMlp, context(2), kMlpSplit);
    solve::Solution solution = *request.solution;
    solution.placements[0] = Placement::split(0);
    request.solution = std::make_shared<const solve::Solution>(solution);
    const auto plan = makePlan(
        request, explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get()));
    QVERIFY(!plan.has_value());
    QVERIFY2(plan.error().message.starts_with("x cannot be S(0) on 2 ranks: "), plan.error().message.c_str());
  }

  /// Training adds identities and gathers inputs again. All else is the program for a forward pass, in its order.
  void trainingAddsOnlySumsOfGradients() {
    int changed = 0;
    for (const std::uint64_t seed : test::Seeds(200)) {
      const auto problem = withLoss(*test::RandomProblem(seed).build());
      const auto result = solve::solve(*problem, solve::Engine::Learning, *solve::makeCountingSink());
      if (!result || !result->solution) continue;
      PlanRequest request;
      request.problem = problem;
      request.solution = std::make_shared<const solve::Solution>(*result->solution);
      changed += isForwardPassWithSums(request);
      if (QTest::currentTestFailed()) return;
    }
    QVERIFY2(changed > static_cast<int>(test::rounds(200) / 10), fmt::format("{} programs have sums", changed).c_str());
  }

  void trainingAddsOnlySumsToALlama() {
    for (const auto sequence : {rules::SequenceParallel::Off, rules::SequenceParallel::On}) {
      const auto graph = test::llamaGraph({.layers = 1, .kvHeads = 2});
      auto problem = withLoss({graph, context(4, sequence, rules::CandidateSet::Full), {}});
      const auto result = test::solvedBy(solve::Engine::Reference, *problem);
      QVERIFY(result.solution.has_value());
      PlanRequest request;
      request.problem = problem;
      request.solution = std::make_shared<const solve::Solution>(*result.solution);
      QVERIFY(isForwardPassWithSums(request));
    }
  }

 private:
  /// True if the program for training has added nodes. Fails if it differs in anything else.
  bool isForwardPassWithSums(const PlanRequest& request) {
    bool hasSums = false;
    [&] {
      const auto training = replace(request);
      QVERIFY2(training, training ? "" : training.error().message.c_str());
      const auto inference = lower(request, request.problem->graph->outputs);
      QVERIFY(inference);
      Comparison comparison(*training->program, inference->program);
      const QByteArray difference = comparison.difference();
      QVERIFY2(difference.isEmpty(), difference + "\n" + graph::toText(*training->program).c_str());
      hasSums = comparison.addsNodes();
    }();
    return hasSums;
  }
};

QTEST_APPLESS_MAIN(TestReplace)
#include "tst_replace.moc"
