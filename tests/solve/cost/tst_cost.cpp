/// Compares costs with numbers computed by hand: Megatron-LM's collectives (arXiv:1909.08053, arXiv:2205.05198), FLOPs
/// of a transformer layer, optimizer states and the KV cache. It also compares sums with their parts on random graphs.
#include "solve/cost/cost_model.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

constexpr std::int64_t kReal = 4;  // bytes of float32

Solution solved(const Problem& problem) {
  const auto result = record(std::make_shared<const Problem>(problem)).result;
  if (!result.solution) qFatal("no solution");
  return *result.solution;
}

Problem problemFor(std::shared_ptr<const Graph> graph, int ranks, bool isTraining,
                   rules::SequenceParallel sequence = rules::SequenceParallel::Off,
                   rules::CandidateSet candidateSet = rules::CandidateSet::Optimum) {
  Problem problem;
  problem.graph = std::move(graph);
  problem.context = {ranks, candidateSet, sequence};
  problem.cost.isTraining = isTraining;
  return problem;
}

PlanCost costOfReference(const Problem& problem) { return costOf(problem, solved(problem)); }

StepCost costOfNode(const Problem& problem, const Solution& solution, std::string_view value) {
  const Variables variables(problem);
  const ValueId id = problem.graph->findValue(value);
  if (!id.isValid()) qFatal("no such value");
  return CostModel(problem, variables).byNode(solution)[problem.graph->value(id).producer.index()];
}

/// Bytes that one more decoder layer sends.
std::int64_t trafficOfALayer(LlamaSizes sizes, int ranks, bool isTraining,
                             rules::SequenceParallel sequence = rules::SequenceParallel::Off) {
  sizes.layers = 2;
  const auto two = costOfReference(problemFor(llamaGraph(sizes), ranks, isTraining, sequence)).sum;
  sizes.layers = 3;
  const auto three = costOfReference(problemFor(llamaGraph(sizes), ranks, isTraining, sequence)).sum;
  return three.trafficBytes - two.trafficBytes;
}

}  // namespace

class TestCost : public QObject {
  Q_OBJECT
 private slots:
  void aMegatronLayerReducesTwiceForwardAndTwiceBackward() {
    const LlamaSizes sizes;
    const std::int64_t once = sizes.batch * sizes.sequence * sizes.hidden * kReal;
    QCOMPARE(trafficOfALayer(sizes, 2, false), 2 * once);
    QCOMPARE(trafficOfALayer(sizes, 2, true), 4 * once);
    QCOMPARE(trafficOfALayer(sizes, 4, true), 4 * once);
  }

  void theRestIsEmbeddingLossAndOutput() {
    const LlamaSizes s;
    const std::int64_t hidden = s.batch * s.sequence * s.hidden * kReal;
    const std::int64_t loss = 3 * s.batch * (s.sequence - 1) * kReal;
    const std::int64_t logits = s.batch * s.sequence * s.vocab * kReal;
    QCOMPARE(costOfReference(problemFor(llamaGraph(s), 2, false)).sum.trafficBytes,
             s.layers * 2 * hidden + hidden + loss + logits);
    // The head's input needs one gradient reduction, like that of every column layer. The full logits are not needed.
    QCOMPARE(costOfReference(problemFor(llamaGraph(s), 2, true)).sum.trafficBytes,
             s.layers * 4 * hidden + hidden + hidden + loss);
  }

  void sequenceParallelismSendsTheSameBytes() {
    const LlamaSizes sizes;
    const std::int64_t once = sizes.batch * sizes.sequence * sizes.hidden * kReal;
    const auto on = rules::SequenceParallel::On;
    // Forward: two reduce-scatters and two all-gathers replace two all-reduces, each of which equals one of both.
    QCOMPARE(trafficOfALayer(sizes, 2, false, on), 4 * once);
  }

  void ringFactors() {
    LlamaSizes sizes;
    sizes.hasLoss = false;
    for (const int ranks : {2, 4}) {
      Problem problem = problemFor(llamaGraph(sizes), ranks, false);
      problem.cost.profile.linkLatencySeconds = 0;
      const Solution solution = solved(problem);
      const double bytes = static_cast<double>(sizes.batch * sizes.sequence * sizes.hidden * kReal);
      const double seconds = 2.0 * (ranks - 1) / ranks * bytes / problem.cost.profile.linkBytesPerSecond;
      const auto reduce = costOfNode(problem, solution, "embedding_0");
      QCOMPARE(reduce.trafficBytes, static_cast<std::int64_t>(bytes));
      QVERIFY(reduce.trafficFs == static_cast<std::int64_t>(std::llround(seconds * 1e15)));
    }
  }

  void aLatencyForEveryCollective() {
    LlamaSizes sizes;
    Problem problem = problemFor(llamaGraph(sizes), 2, false);
    const Solution solution = solved(problem);
    const auto without = [&] {
      Problem quick = problem;
      quick.cost.profile.linkLatencySeconds = 0;
      return costOf(quick, solution).sum.trafficFs;
    }();
    problem.cost.profile.linkLatencySeconds = 1;
    // One in the embedding, two per layer, three in the loss, and the gather of the logits.
    const std::int64_t collectives = 1 + 2 * sizes.layers + 3 + 1;
    const Femtoseconds difference =
        costOf(problem, solution).sum.trafficFs - without - collectives * 1'000'000'000'000'000;
    QVERIFY(difference <= collectives && -difference <= collectives);
  }

  void flopsOfALayerAreTwiceParametersTimesTokens() {
    LlamaSizes s;
    s.hasLoss = false;
    Problem problem = problemFor(llamaGraph(s), 1, false);
    problem.cost.profile.memoryBytesPerSecond = 1e30;  // only FLOPs count
    problem.cost.profile.floatFlopsPerSecond = 1e15;   // one FLOP per femtosecond
    const Solution solution = solved(problem);
    const auto flops = [&](std::string_view value) {
      return static_cast<std::int64_t>(costOfNode(problem, solution, value).computeFs.count());
    };
    const std::int64_t tokens = s.batch * s.sequence, width = s.hidden / s.heads;
    QCOMPARE(flops("linear_0"), 2 * tokens * s.hidden * s.hidden);
    QCOMPARE(flops("linear_1"), 2 * tokens * s.hidden * s.kvHeads * width);
    QCOMPARE(flops("linear_4"), 2 * tokens * s.hidden * s.intermediate);
    QCOMPARE(flops("scaled_dot_product_attention_0"), 4 * s.batch * s.heads * s.sequence * s.sequence * width);
    QCOMPARE(flops("view_0"), std::int64_t{0});
    QCOMPARE(flops("sigmoid_0"), tokens * s.intermediate);
    QCOMPARE(flops("embedding_0"), std::int64_t{0});
  }

  void replicatedWorkCountsInFull() {
    LlamaSizes s;
    s.hasLoss = false;
    const auto graph = llamaGraph(s);
    const Problem one = problemFor(graph, 1, false), two = problemFor(graph, 2, false);
    const Solution whole = solved(one), split = solved(two);
    // A norm runs on every rank. The product of a column layer is split.
    QVERIFY(costOfNode(two, split, "rsqrt_0").computeFs == costOfNode(one, whole, "rsqrt_0").computeFs);
    QVERIFY(costOfNode(two, split, "linear_4").computeFs < costOfNode(one, whole, "linear_4").computeFs);
  }

  void optimizerStates_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<qint64>("bytesPerParameter");
    const auto row = [](const char* name, const char* dtype, Optimizer optimizer, qint64 bytes) {
      QTest::newRow(name) << dtype << static_cast<int>(optimizer) << bytes;
    };
    row("AdamW in float32", "f32", Optimizer::AdamW, 4 + 4 + 8);
    row("AdamW in bfloat16", "bf16", Optimizer::AdamW, 2 + 2 + 12);
    row("momentum in float32", "f32", Optimizer::Momentum, 4 + 4 + 4);
    row("momentum in bfloat16", "bf16", Optimizer::Momentum, 2 + 2 + 8);
    row("SGD in float32", "f32", Optimizer::Sgd, 4 + 4);
    row("AdamW in float64", "f64", Optimizer::AdamW, 8 + 8 + 16);
    row("none in bfloat16", "bf16", Optimizer::None, 2 + 2);
  }
  void optimizerStates() {
    QFETCH(QString, dtype);
    QFETCH(int, optimizer);
    QFETCH(qint64, bytesPerParameter);
    const std::string t = dtype.toStdString();
    const auto graph = parsedGraph("x: " + t + "[4,8] = input\nw: " + t + "[16,8] = parameter @fc\nlinear_0: " + t +
                                   "[4,16] = aten::linear(x, w, None) @fc\nreturn y=linear_0\n");
    Problem problem = problemFor(graph, 2, true);
    problem.cost.optimizer = static_cast<Optimizer>(optimizer);
    const PlanCost cost = costOfReference(problem);
    QCOMPARE(cost.sum.parameters + cost.sum.gradients + cost.sum.optimizer, 16 * 8 / 2 * bytesPerParameter);
    problem.cost.isTraining = false;
    const PlanCost inference = costOfReference(problem);
    QCOMPARE(inference.sum.gradients + inference.sum.optimizer + inference.sum.activations, std::int64_t{0});
  }

  void theCacheHoldsKeysAndValuesBeforeHeadsAreRepeated() {
    const LlamaSizes s;
    const std::int64_t width = s.hidden / s.heads;
    for (const int ranks : {1, 2, 4}) {
      Problem problem = problemFor(llamaGraph(s), ranks, false);
      const std::int64_t whole = 2 * s.layers * s.batch * s.sequence * s.kvHeads * width * kReal;
      QCOMPARE(costOfReference(problem).sum.kvCache, whole / ranks);
      problem.cost.holdsKvCache = false;
      QCOMPARE(costOfReference(problem).sum.kvCache, std::int64_t{0});
      problem.cost.isTraining = true;
      QCOMPARE(costOfReference(problem).sum.kvCache, std::int64_t{0});
    }
  }

  void tiedWeightsCountOnce() {
    LlamaSizes s;
    const auto apart = costOfReference(problemFor(llamaGraph(s), 2, true)).sum;
    s.isTied = true;
    const auto tied = costOfReference(problemFor(llamaGraph(s), 2, true)).sum;
    QCOMPARE(apart.parameters - tied.parameters, s.vocab * s.hidden * kReal / 2);
  }

  void backwardKeepsFactorsAndResults() {
    const auto graph = parsedGraph(
        "x: f32[4,8] = input\nw: f32[8,8] = parameter @fc\nlinear_0: f32[4,8] = aten::linear(x, w, None) @fc\n"
        "exp_0: f32[4,8] = aten::exp(linear_0)\nmul_0: f32[4,8] = aten::mul.Tensor(linear_0, exp_0)\n"
        "add_0: f32[4,8] = aten::add.Tensor(mul_0, linear_0, 1)\nreturn y=add_0\n");
    // linear_0 is a factor, and exp_0 is a factor and a result; each is saved once. mul_0 and add_0 are not saved.
    QCOMPARE(costOfReference(problemFor(graph, 1, true)).sum.activations, 2 * 4 * 8 * kReal);
  }

  void partsAddUpOnRandomGraphs() {
    for (const std::uint64_t seed : test::Seeds(150)) {
      RandomGraph random(seed);
      const auto graph = random.build(12);
      for (const auto sequence :
           {rules::SequenceParallel::Off, rules::SequenceParallel::On, rules::SequenceParallel::Auto}) {
        for (const bool isTraining : {false, true}) {
          const Problem problem = problemFor(graph, 2, isTraining, sequence, rules::CandidateSet::Full);
          const auto result = record(std::make_shared<const Problem>(problem)).result;
          if (result.solution) checkParts(problem, *result.solution, seed);
        }
      }
    }
  }

  void equalStepsCostTheSame() {
    LlamaSizes s;
    s.layers = 4;
    const Problem problem = problemFor(llamaGraph(s), 2, true);
    const Solution solution = solved(problem);
    const Variables variables(problem);
    const CostModel model(problem, variables);
    const auto class1 = model.costClass(problem.graph->value(problem.graph->findValue("linear_8")).producer);
    const auto class2 = model.costClass(problem.graph->value(problem.graph->findValue("linear_15")).producer);
    QCOMPARE(class1, class2);
    QCOMPARE(costOfNode(problem, solution, "linear_8"), costOfNode(problem, solution, "linear_15"));
  }

  void timesAreReadable() {
    QCOMPARE(timeText(0), std::string("0 s"));
    QCOMPARE(timeText(12'000'000), std::string("12 ns"));
    QCOMPARE(timeText(1'250'000'000'000), std::string("1.25 ms"));
    QCOMPARE(timeText(830'000'000'000), std::string("830 µs"));
    QCOMPARE(timeText(999'700'000'000), std::string("1.00 ms"));
    QCOMPARE(timeText(2'500'000'000'000), std::string("2.50 ms"));
    QCOMPARE(timeText(-1'500'000'000'000'000), std::string("-1.50 s"));
    QCOMPARE(timeText(3), std::string("3 fs"));
    QCOMPARE(timeText(Femtoseconds::ofSeconds(9'223)), std::string("9223 s"));
    QCOMPARE(timeText(Femtoseconds::ofSeconds(36'000)), std::string("10 h"));
    QCOMPARE(timeText(Femtoseconds::ofSeconds(864'000)), std::string("10 days"));
    QCOMPARE(timeText(-Femtoseconds::ofSeconds(3.15576e9)), std::string("-100 years"));
  }

  void optimizersHaveNames() {
    for (const auto optimizer : {Optimizer::None, Optimizer::Sgd, Optimizer::Momentum, Optimizer::AdamW}) {
      QCOMPARE(parseOptimizer(toText(optimizer)), std::optional(optimizer));
    }
    QVERIFY(!parseOptimizer("adam").has_value());
  }

 private:
  static void checkParts(const Problem& problem, const Solution& solution, std::uint64_t seed) {
    const Variables variables(problem);
    const CostModel model(problem, variables);
    StepCost sum;
    std::vector<Shares> paid(problem.graph->values.size(), kSharesNothing);
    for (NodeId node : variables.deciders()) {
      std::vector<Placement> reads;
      for (const Read& read : variables.reads(node)) reads.push_back(solution.of(read.value));
      const Choice choice = choiceOf(variables, problem, solution, node);
      sum += model.step(node, choice, reads);
      for (std::size_t i = 0; i < variables.writes(node).size(); ++i) {
        const Shares parts = model.paysShared(node, choice, i);
        if (parts != kSharesNothing) paid[variables.writes(node)[i].index()] |= parts;
      }
      for (std::size_t i = 0; i < reads.size(); ++i) {
        const ValueId value = variables.reads(node)[i].value;
        const Shares parts = model.needsShared(node, choice, reads, i) & ~paid[value.index()];
        if (parts == kSharesNothing) continue;
        QVERIFY(model.mayShare(value));
        paid[value.index()] |= parts;
        sum += model.shared(value, solution.of(value), parts);
      }
    }
    if (sum.summedGradients > 0) sum += model.bucketStart();
    const PlanCost cost = model.evaluate(solution);
    QVERIFY2(cost.sum == sum, qPrintable(QString("seed %1").arg(seed)));
    StepCost byNode;
    for (const StepCost& step : model.byNode(solution)) byNode += step;
    QVERIFY2(byNode == sum, qPrintable(QString("seed %1").arg(seed)));
    QVERIFY(cost.transientPeak >= 0 && cost.bytes() == sum.bytes() + cost.fixedBytes + cost.transientPeak);
  }
};

QTEST_APPLESS_MAIN(TestCost)
#include "tst_cost.moc"
