/// The backward pass of a rank program: it has exactly the collectives that the cost model charges, and a program
/// without one of them is rejected.
#include "program/backward.h"
#include "solve/cost/cost_model.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include "graph/operators.h"

#include <QTest>
#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"

using namespace cleave;
using test::need;

namespace {

/// A random graph whose result is summed to a loss.
std::shared_ptr<const graph::Graph> withLoss(const graph::Graph& graph) {
  std::string text = graph::toText(graph);
  const std::string result = graph.value(graph.outputs.front().value).name;
  text.resize(text.rfind("return"));
  text += fmt::format("loss: f32[] = aten::sum({}, None)\nreturn loss=loss\n", result);
  return std::make_shared<const graph::Graph>(need(graph::parseGraph(text)));
}

std::optional<plan::Plan> trainingPlan(std::shared_ptr<const graph::Graph> graph, int ranks,
                                       rules::SequenceParallel sequence, rules::CandidateSet menu,
                                       bool checkpoints = false) {
  auto problem = std::make_shared<solve::Problem>(*test::problemOf(std::move(graph), ranks, {}, sequence));
  problem->context.candidateSet = menu;
  problem->cost.isTraining = true;
  problem->cost.checkpointsActivations = checkpoints;
  const auto solved = test::solvedBy(solve::Engine::Reference, *problem);
  if (!solved.solution) return std::nullopt;
  plan::PlanRequest request;
  request.problem = problem;
  request.solution = std::make_shared<const solve::Solution>(*solved.solution);
  return need(plan::makePlan(
      request, plan::explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get())));
}

/// Its calls in this many modules of a list, which run again if they are checkpointed.
std::shared_ptr<const graph::Graph> inBlocks(const graph::Graph& graph, std::size_t callsInBlock) {
  std::string text;
  std::size_t calls = 0;
  for (const QByteArray& line : QByteArray::fromStdString(graph::toText(graph)).split('\n')) {
    const bool isCall = line.contains("= aten::") && !line.startsWith("loss:");
    text += (isCall && line.contains(" @") ? line.left(line.lastIndexOf(" @")) : line).toStdString();
    if (isCall) text += fmt::format(" @blocks.{}", calls++ / callsInBlock);
    text += '\n';
  }
  return std::make_shared<const graph::Graph>(need(graph::parseGraph(text)));
}

/// Seconds of a ring collective, as in core/solve/cost/cost_model.h; the bucket starts once.
Femtoseconds timeOf(const plan::Plan& plan) {
  const auto& profile = plan.spec.cost.profile;
  Femtoseconds time;
  bool isBucketStarted = false;
  const auto add = [&](const program::Collective& collective, int ranks, bool isInBucket) {
    const double rounds = collective.kind == rules::CollectiveKind::AllReduce ? 2 : 1;
    const double sending =
        rounds * (ranks - 1) / ranks * static_cast<double>(collective.bytes) / profile.linkBytesPerSecond;
    const bool starts = !isInBucket || !std::exchange(isBucketStarted, true);
    time += Femtoseconds::ofSeconds(sending + (starts ? profile.linkLatencySeconds : 0.0));
  };
  for (const auto& forward : plan.collectives) add({forward.kind, forward.bytes}, plan.spec.ranks, false);
  for (const auto& backward : plan.backward->collectives)
    add(backward.collective, backward.ranks, !backward.node.isValid());
  return time;
}

std::int64_t bytesOf(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (const auto& forward : plan.collectives) bytes += forward.bytes;
  for (const auto& backward : plan.backward->collectives) bytes += backward.collective.bytes;
  return bytes;
}

/// The least memory that one step needs in any case is not more than the peak of the whole step.
bool holdsAtLeastWhatIsClaimed(const plan::Plan& plan) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {plan.spec.ranks, plan.spec.candidates(), plan.spec.sequenceParallel};
  problem.cost = plan.spec.cost;
  const solve::Variables variables(problem);
  const solve::CostModel model(problem, variables);
  for (const graph::NodeId node : variables.deciders()) {
    std::vector<rules::Placement> reads;
    for (const solve::Read& read : variables.reads(node)) reads.push_back(plan.solution->of(read.value));
    const auto least = model.leastTransient(node, solve::choiceOf(variables, problem, *plan.solution, node), reads);
    if (std::max(least.forward, least.elsewhere) > plan.cost.transientPeak) return false;
  }
  return true;
}

QByteArray chargesWhatIsDone(const plan::Plan& plan) {
  if (!plan.backward) return "no backward";
  if (bytesOf(plan) != plan.cost.sum.trafficBytes) {
    return fmt::format("the program moves {} bytes, the cost model charges {}:\n{}", bytesOf(plan),
                       plan.cost.sum.trafficBytes, graph::toText(*plan.program))
        .c_str();
  }
  // The parts of the bucket are rounded one by one there.
  const auto off = static_cast<double>(timeOf(plan) - plan.cost.sum.trafficFs);
  return std::abs(off) < 1000 ? QByteArray() : QByteArray("another time");
}

/// The program without one of its grad_all_reduce nodes; the readers get that node's operand.
std::shared_ptr<const graph::Graph> withoutSum(const graph::Graph& program, std::size_t index) {
  std::string text = graph::toText(program);
  std::size_t at = 0;
  for (std::size_t i = 0; i <= index; ++i) at = text.find("= cleave::grad_all_reduce(", at + 1);
  if (at == std::string::npos) return nullptr;
  const std::size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  const std::string line = text.substr(begin, end - begin);
  const std::string result = line.substr(0, line.find(':'));
  const std::size_t open = line.find('(') + 1;
  const std::string operand = line.substr(open, line.find(')') - open);
  text.erase(begin, end - begin + 1);
  for (std::size_t use = 0; (use = text.find(result, use)) != std::string::npos; use += operand.size())
    text.replace(use, result.size(), operand);
  return std::make_shared<const graph::Graph>(need(graph::parseGraph(text)));
}

}  // namespace

class TestBackward : public QObject {
  Q_OBJECT

 private slots:
  void chargesExactlyWhatALlamaDoes_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<bool>("isTied");
    QTest::addColumn<bool>("checkpoints");
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int sequence : {0, 1, 2}) {
        for (const bool isTied : {false, true}) {
          QTest::addRow("%d ranks, sequence %d, tied %d", ranks, sequence, isTied)
              << ranks << sequence << isTied << false;
        }
        QTest::addRow("%d ranks, sequence %d, checkpointed", ranks, sequence) << ranks << sequence << false << true;
      }
    }
  }
  void chargesExactlyWhatALlamaDoes() {
    QFETCH(int, ranks);
    QFETCH(int, sequence);
    QFETCH(bool, isTied);
    QFETCH(bool, checkpoints);
    const auto graph = test::llamaGraph({.layers = 2, .isTied = isTied});
    const auto plan = trainingPlan(graph, ranks, static_cast<rules::SequenceParallel>(sequence),
                                   rules::CandidateSet::Full, checkpoints);
    QVERIFY(plan);
    QCOMPARE(chargesWhatIsDone(*plan), QByteArray());
    QCOMPARE(plan->checkpointed.size(), checkpoints ? 2 : 0);
  }

  /// Blocks keep their inputs. Reductions before a kept value run once more, but not the one at a block's end.
  void blocksRunAgain() {
    const auto graph = test::llamaGraph({.layers = 4});
    const auto planned = [&](bool checkpoints) {
      return trainingPlan(graph, 2, rules::SequenceParallel::Off, rules::CandidateSet::Full, checkpoints);
    };
    const auto plain = planned(false), checkpointed = planned(true);
    QVERIFY(plain && checkpointed);
    QVERIFY(checkpointed->cost.sum.activations * 3 < plain->cost.sum.activations);
    QVERIFY(checkpointed->cost.bytes() < plain->cost.bytes());
    QVERIFY(checkpointed->cost.sum.computeFs > plain->cost.sum.computeFs);
    QCOMPARE(checkpointed->backward->collectives.size(), plain->backward->collectives.size() + 4);
    for (const graph::CheckpointedBlock& block : checkpointed->backward->checkpoints.blocks)
      QVERIFY2(block.kept.size() <= 4, block.path.c_str());
  }

  void chargesExactlyWhatRandomGraphsDo() {
    int trained = 0;
    for (const std::uint64_t seed : test::Seeds(300)) {
      test::RandomGraph random(seed);
      const auto graph = withLoss(*random.build(static_cast<int>(random.pick({3, 6, 9, 12}))));
      for (const auto sequence : {rules::SequenceParallel::Off, rules::SequenceParallel::Auto}) {
        const auto plan =
            trainingPlan(graph, static_cast<int>(random.pick({2, 3, 4})), sequence, rules::CandidateSet::Full);
        if (!plan || !graph::findGradients(*graph).loss.isValid()) continue;
        const QByteArray wrong = chargesWhatIsDone(*plan);
        QVERIFY2(wrong.isEmpty(), wrong.constData());
        trained += !plan->backward->collectives.empty();
        const auto again = trainingPlan(inBlocks(*graph, random.pick({2, 4, 7})), plan->spec.ranks, sequence,
                                        rules::CandidateSet::Full, true);
        const QByteArray wrongAgain = again ? chargesWhatIsDone(*again) : QByteArray("no plan");
        QVERIFY2(wrongAgain.isEmpty(), wrongAgain.constData());
        QVERIFY(holdsAtLeastWhatIsClaimed(*again));
      }
    }
    QVERIFY(trained > static_cast<int>(test::rounds(300) / 15));
  }

  /// Every reduction is needed: without any one of them a gradient would be wrong, and the program is rejected.
  void refusesAProgramThatLacksAReduction() {
    for (const auto sequence : {rules::SequenceParallel::Off, rules::SequenceParallel::On}) {
      const auto plan =
          trainingPlan(test::llamaGraph({.layers = 1, .kvHeads = 2}), 4, sequence, rules::CandidateSet::Full);
      QVERIFY(plan);
      std::size_t removed = 0;
      while (const auto broken = withoutSum(*plan->program, removed)) {
        const auto backward = program::backwardOf(*broken, plan->parameters, plan->spec.ranks);
        QVERIFY2(!backward, fmt::format("without sum {}:\n{}", removed, graph::toText(*broken)).c_str());
        QVERIFY2(backward.error().message.find("no grad_all_reduce sums") != std::string::npos,
                 backward.error().message.c_str());
        ++removed;
      }
      QVERIFY2(removed >= 4, fmt::format("{} sums", removed).c_str());
    }
  }

  void saysWhatTypesGradientsHave() {
    const auto plan =
        trainingPlan(test::llamaGraph({.layers = 1}), 2, rules::SequenceParallel::Off, rules::CandidateSet::Optimum);
    QVERIFY(plan && plan->backward);
    const auto typeOf = [&](std::string_view name) {
      const auto value = plan->program->findValue(name);
      return value.isValid() ? std::string(program::toText(plan->backward->types[value.index()])) : "gone";
    };
    QCOMPARE(typeOf("model.layers.0.self_attn.q_proj.weight"), "varying");
    QCOMPARE(typeOf("model.norm.weight"), "invariant");
    const auto& graph = *plan->program;
    for (const graph::Node& node : graph.nodes) {
      if (node.kind != graph::NodeKind::Call) continue;
      const auto operand = graph::operandsOf(node).empty() ? graph::ValueId() : graph::operandsOf(node)[0];
      if (graph.opName(node) == graph::kAllReduce) QCOMPARE(typeOf(graph.value(operand).name), "partial");
      if (graph.opName(node) == graph::kGradAllReduce)
        QCOMPARE(typeOf(graph.value(node.results[0]).name), "replicated");
    }
  }

  void needsALoss() {
    const auto graph = std::make_shared<const graph::Graph>(need(graph::parseGraph(
        "x: f32[2,8] = input\nw: f32[4,8] = parameter\ny: f32[2,4] = aten::linear(x, w, None)\nreturn y=y\n")));
    const auto backward = program::backwardOf(*graph, {}, 1);
    QVERIFY(!backward);
    QVERIFY(backward.error().message.find("no loss") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(TestBackward)
#include "tst_backward.moc"
