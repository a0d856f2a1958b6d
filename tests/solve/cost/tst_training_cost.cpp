/// Compares traffic and memory of a training step with numbers computed by hand for the shapes of Llama 3 8B (hidden
/// 4096, 32 heads, 8 KV heads, intermediate 14336, vocabulary 128256) in bfloat16, sequence 8192, batch 1, on 8 ranks.
#include "solve/cost/cost_model.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

constexpr int kRanks = 8;
constexpr std::int64_t kItem = 2;                                      ///< bytes of bfloat16
constexpr std::int64_t kHidden = 8192 * 4096 * kItem;                  ///< 64 MiB: the full hidden states
constexpr std::int64_t kHiddenPart = kHidden / kRanks;                 ///< 8 MiB
constexpr std::int64_t kFeaturesPart = 8192 * 14336 / kRanks * kItem;  ///< 28 MiB: gate, up or their product, split
constexpr std::int64_t kLossBytes = kItem;                             ///< a bfloat16 scalar
constexpr std::int64_t kSecond = 1'000'000'000'000'000;                ///< femtoseconds

struct Priced {
  std::shared_ptr<const Problem> problem;
  Solution solution;
  PlanCost cost;

  /// The cost of a value's node, shared collectives included.
  StepCost of(std::string_view value) const { return of(value, *problem); }
  /// The same with other cost settings.
  StepCost of(std::string_view value, const Problem& priced) const {
    const Variables variables(priced);
    return CostModel(priced, variables)
        .byNode(solution)[priced.graph->value(priced.graph->findValue(value)).producer.index()];
  }
  /// The problem of the plan for the forward pass only.
  Problem forward() const {
    Problem forward = *problem;
    forward.cost.isTraining = false;
    return forward;
  }
};

/// The plan under the pins.
Priced priced(std::shared_ptr<const Graph> graph, const std::vector<std::string>& pins,
              Optimizer optimizer = Optimizer::AdamW) {
  auto problem = std::make_shared<Problem>(*problemOf(std::move(graph), kRanks, pins, rules::SequenceParallel::On));
  problem->context.candidateSet = rules::CandidateSet::Full;
  problem->cost.isTraining = true;
  problem->cost.optimizer = optimizer;
  const auto result = record(problem).result;
  if (!result.solution) qFatal("no solution: %s", result.causes.empty() ? "" : result.causes.front().reason.c_str());
  return {problem, *result.solution, costOf(*problem, *result.solution)};
}

Priced priced(const std::string& text, const std::vector<std::string>& pins, Optimizer optimizer = Optimizer::AdamW) {
  return priced(parsedGraph(text), pins, optimizer);
}

std::string linear(std::string_view result, std::string_view input, std::string_view layer, int in, int out,
                   int sequence = 8192) {
  return fmt::format(
      "{2}.weight: bf16[{4},{3}] = parameter @{2}\n{0}: bf16[1,{5},{4}] = aten::linear({1}, {2}.weight, None) @{2}\n",
      result, input, layer, in, out, sequence);
}

/// y: the experts of Mixtral 8x7B for tokens `h`. Each token has 2 `ids` and `shares`.
std::string mixtralExperts(int tokens) {
  return fmt::format(
      "mlp.gate_up: bf16[8,28672,4096] = parameter @mlp\nmlp.down: bf16[8,4096,14336] = parameter @mlp\n"
      "y: bf16[{},4096] = cleave::moe_experts(h, ids, shares, mlp.gate_up, mlp.down, \"silu\", None, 1.0, 0.0) @mlp\n",
      tokens);
}
std::string mixtralExpertsOfInputs(int tokens) {
  return fmt::format("h: bf16[{0},4096] = input\nshares: bf16[{0},2] = input\nids: i64[{0},2] = input\n", tokens) +
         mixtralExperts(tokens);
}

/// Two layers with results split on the sequence, followed by the given text.
std::string onSequence(const std::string& rest) {
  return "x: bf16[1,8192,4096] = input\n" + linear("a", "x", "first", 4096, 4096) +
         linear("b", "a", "second", 4096, 4096) + rest;
}
const std::vector<std::string> kOnSequence{"first=column", "second=row+scatter"};

std::vector<std::string> with(std::vector<std::string> pins) {
  pins.insert(pins.begin(), kOnSequence.begin(), kOnSequence.end());
  return pins;
}

/// A gated MLP that reads the sequence.
std::string mlp() {
  return linear("g", "b", "gate", 4096, 14336) + linear("u", "b", "up", 4096, 14336) +
         "m: bf16[1,8192,14336] = aten::mul.Tensor(g, u)\n" + linear("d", "m", "down", 14336, 4096) +
         "loss: bf16[] = aten::sum(d)\nreturn loss=loss\n";
}
const std::vector<std::string> kMlp{"gate=gather+column", "up=gather+column", "down=row"};

LlamaSizes llama8b(std::int64_t layers) {
  return {.layers = layers,
          .hidden = 4096,
          .heads = 32,
          .kvHeads = 8,
          .intermediate = 14336,
          .vocab = 128256,
          .sequence = 8192};
}

StepCost llamaStep(std::int64_t layers, double latencySeconds) {
  Problem problem;
  problem.graph = llamaGraph(llama8b(layers));
  problem.context = {kRanks, rules::CandidateSet::Optimum, rules::SequenceParallel::On};
  problem.cost.isTraining = true;
  problem.cost.profile.linkLatencySeconds = latencySeconds;
  const auto result = record(std::make_shared<const Problem>(problem)).result;
  if (!result.solution) qFatal("no solution");
  return costOf(problem, *result.solution).sum;
}

}  // namespace

class TestTrainingCost : public QObject {
  Q_OBJECT

 private slots:
  /// A row layer computes b (forward: reduce-scatter; backward: all-gather of its gradient), and gate and up read it.
  /// That needs one all-gather forward, one more backward for the gradients of both weights, and one reduce-scatter of
  /// its gradient.
  void gathersAgainForTheBackwardPass() {
    const Priced plan = priced(onSequence(mlp()), with(kMlp));
    QCOMPARE(plan.of("b").trafficBytes, 5 * kHidden);
  }

  /// Forward has 2 all-gathers and 2 reduce-scatters of b·s·h. Backward has the reverse of each, 2 more all-gathers,
  /// and the gradients of the two norms. The type is float32, so the bytes are doubled.
  void aLayerOnTheSequence() {
    const std::int64_t layer = llamaStep(3, 0).trafficBytes - llamaStep(2, 0).trafficBytes;
    QCOMPARE(layer, 10 * 2 * kHidden + 2 * 4096 * std::int64_t{4});
  }

  /// The result is replicated, so its gradient is complete on every rank, and each rank slices its part of the input's
  /// gradient for free.
  void aReplicatedWeightNeedsNoReduction() {
    const std::string router = linear("r", "b", "router", 4096, 8) + "loss: bf16[] = aten::sum(r)\nreturn loss=loss\n";
    const Priced plan = priced(onSequence(router), with({"router=gather+whole"}));
    QCOMPARE(plan.of("b").trafficBytes, 4 * kHidden);
  }

  /// Mixtral 8x7B has the shapes of the 8B model and 8 experts, 2 per token. The experts of a rank give a part of the
  /// gradients of the tokens (all-reduce of 8192·4096) and of their shares (8192·2). Both are R and are read by split
  /// weights.
  void tokensAndSharesOfSplitExpertsSumTheirGradients_data() {
    QTest::addColumn<QString>("strategy");
    QTest::addColumn<qint64>("sums");
    QTest::addColumn<qint64>("kept");
    constexpr qint64 kPlaces = 8192 * 2;
    constexpr qint64 kPlace = 16, kShare = kItem;  // two 64-bit numbers, and the counts of the experts
    QTest::newRow("whole experts on each rank")
        << "by-expert" << qint64(1) << kPlaces / kRanks * ((3 * 4096 + 4 * 14336) * kItem + kShare + kPlace);
    QTest::newRow("a part of each expert")
        << "in-expert" << qint64(1) << kPlaces * ((3 * 4096 + 4 * 14336 / kRanks) * kItem + kShare + kPlace);
    QTest::newRow("all experts on every rank")
        << "replicated" << qint64(0) << kPlaces * ((3 * 4096 + 4 * 14336) * kItem + kShare + kPlace);
  }
  void tokensAndSharesOfSplitExpertsSumTheirGradients() {
    QFETCH(QString, strategy);
    QFETCH(qint64, sums);
    QFETCH(qint64, kept);
    const std::string text =
        "x: bf16[8192,4096] = input\nin.weight: bf16[4096,4096] = parameter @in\nh: bf16[8192,4096] = aten::linear(x, "
        "in.weight, None) @in\n"
        "router.weight: bf16[8,4096] = parameter @router\nl: bf16[8192,8] = aten::linear(h, router.weight, None) "
        "@router\n"
        "p: bf16[8192,8] = aten::_softmax(l, -1, false)\nshares: bf16[8192,2], ids: i64[8192,2] = aten::topk(p, 2, -1, "
        "true, true)\n" +
        mixtralExperts(8192) + "loss: bf16[] = aten::sum(y)\nreturn loss=loss\n";
    const Priced plan = priced(text, {"in=replicated", "router=replicated", "mlp=" + strategy.toStdString()});
    QCOMPARE(plan.of("h").trafficBytes, sums * kHidden);
    QCOMPARE(plan.of("shares").trafficBytes, sums * 8192 * 2 * kItem);
    // Each of the 2 experts of a token saves its copy, gate, up, the activated gate, their product, its result and the
    // weighted result.
    QCOMPARE(plan.of("y").activations, kept);
    // Each forward product has two backward products, one for the tokens and one for the weights.
    const Femtoseconds once = plan.of("y", plan.forward()).computeFs;
    const Femtoseconds apart = plan.of("y").computeFs - (once + once + once);
    QVERIFY(apart >= -3 && apart <= 3);
  }

  /// Mixtral 8x7B at sequence 4096 has 8192 token slots with 2 experts per token, 1024 per expert. Forward, an expert
  /// allocates gate and up (2·14336), the activated gate, their product (14336 each) and the result (4096), also in
  /// parts of 1792 features. Backward, it allocates its products and their gradients beyond the saved values.
  void expertsNeedWorkSpace_data() {
    QTest::addColumn<QString>("strategy");
    QTest::addColumn<qint64>("forward");
    QTest::addColumn<qint64>("backward");
    QTest::newRow("whole experts on each rank") << "by-expert" << qint64(125'845'504) << qint64(41'943'040);
    QTest::newRow("a part of each expert") << "in-expert" << qint64(23'085'056) << qint64(16'777'216);
    QTest::newRow("all experts on every rank") << "replicated" << qint64(125'845'504) << qint64(41'943'040);
  }
  void expertsNeedWorkSpace() {
    QFETCH(QString, strategy);
    QFETCH(qint64, forward);
    QFETCH(qint64, backward);
    constexpr qint64 kTokens = 4096 * 4096 * kItem;  // 32 MiB: the result and its gradient
    const std::string text = mixtralExpertsOfInputs(4096) + "loss: bf16[] = aten::sum(y)\nreturn loss=loss\n";
    const Priced plan = priced(text, {"mlp=" + strategy.toStdString()}, Optimizer::None);
    QCOMPARE(plan.cost.transientPeak, kTokens + backward + kLossBytes);
    QCOMPARE(costOf(plan.forward(), plan.solution).transientPeak, kTokens + forward);
  }

  /// Mixtral 8x7B: the products of an expert for one token are 2·(28672·4096 + 4096·14336) FLOPs, and its weights have
  /// half as many elements of 2 bytes. 8192 tokens have 16384 slots, 2048 per expert, and all weights are read. One
  /// token has 2 slots, a fourth of a slot per expert, so a fourth of the weights is read. Each token is read and
  /// written, 4096 elements of 2 bytes.
  void expertsTakeTimeByTheirTokens_data() {
    QTest::addColumn<QString>("strategy");
    QTest::addColumn<int>("tokens");
    QTest::addColumn<qint64>("flops");
    QTest::addColumn<qint64>("bytes");
    constexpr qint64 kPlace = 352'321'536, kExpert = 352'321'536, kToken = 2 * 4096 * kItem;
    for (const char* split : {"by-expert", "in-expert"}) {
      QTest::addRow("%s, many tokens", split) << split << 8192 << 2048 * kPlace << kExpert + 8192 * kToken;
      QTest::addRow("%s, one token", split) << split << 1 << kPlace / 4 << kExpert / 4 + kToken;
    }
    QTest::newRow("replicated, many tokens") << "replicated" << 8192 << 16384 * kPlace << 8 * kExpert + 8192 * kToken;
    QTest::newRow("replicated, one token") << "replicated" << 1 << 2 * kPlace << 2 * kExpert + kToken;
  }
  void expertsTakeTimeByTheirTokens() {
    QFETCH(QString, strategy);
    QFETCH(int, tokens);
    QFETCH(qint64, flops);
    QFETCH(qint64, bytes);
    const std::string text = mixtralExpertsOfInputs(tokens) + "return y=y\n";
    const Priced plan = priced(text, {"mlp=" + strategy.toStdString()}, Optimizer::None);
    Problem problem = plan.forward();
    const auto femtoseconds = [&](double flopsPerSecond, double bytesPerSecond) {
      problem.cost.profile.halfFlopsPerSecond = flopsPerSecond;
      problem.cost.profile.memoryBytesPerSecond = bytesPerSecond;
      return static_cast<qint64>(plan.of("y", problem).computeFs.count());
    };
    constexpr double kOneAFemtosecond = 1e15, kForNothing = 1e30;
    QCOMPARE(femtoseconds(kOneAFemtosecond, kForNothing), flops);
    QCOMPARE(femtoseconds(kForNothing, kOneAFemtosecond), bytes);
  }

  /// One KV head on 8 ranks: every rank computes the full key for its own 4 query heads. Its gradient is a partial sum
  /// at the copy for these heads (8192·128). It is summed there, so it is complete for all earlier values, `memory` and
  /// the weight.
  void sharedKvHeadsAreSummedOnce() {
    const std::string text =
        "x: bf16[1,8192,4096] = input\ny: bf16[1,8192,4096] = input\n" + linear("q0", "x", "q", 4096, 4096) +
        linear("memory", "y", "encoder", 4096, 4096) + linear("k0", "memory", "k", 4096, 128) +
        "q1: bf16[1,8192,32,128] = aten::view(q0, [1,8192,32,128])\nq2: bf16[1,32,8192,128] = aten::permute(q1, "
        "[0,2,1,3])\n"
        "k1: bf16[1,8192,1,128] = aten::view(k0, [1,8192,1,128])\nk2: bf16[1,1,8192,128] = aten::permute(k1, "
        "[0,2,1,3])\n"
        "k3: bf16[1,1,1,8192,128] = aten::unsqueeze(k2, 2)\nk4: bf16[1,1,32,8192,128] = aten::expand(k3, "
        "[1,1,32,8192,128])\n"
        "k5: bf16[1,1,32,8192,128] = aten::clone(k4)\nk6: bf16[1,32,8192,128] = aten::view(k5, [1,32,8192,128])\n"
        "s: bf16[1,32,8192,128] = aten::scaled_dot_product_attention(q2, k6, k6, None, 0.0, true)\n"
        "t: bf16[1,8192,32,128] = aten::permute(s, [0,2,1,3])\nv: bf16[1,8192,4096] = aten::reshape(t, "
        "[1,8192,4096])\n" +
        linear("z", "v", "o", 4096, 4096) + "loss: bf16[] = aten::sum(z)\nreturn loss=loss\n";
    const Priced plan = priced(text, {"q=column", "encoder=replicated", "k.weight=S(0,x8)", "o=row"});
    const ValueId weight = plan.problem->graph->findValue("k.weight");
    QCOMPARE(plan.solution.of(weight).text(), std::string("S(0,x8)"));
    QCOMPARE(plan.of("k3").trafficBytes, 8192 * 128 * kItem);
    QCOMPARE(plan.of("memory").trafficBytes, 0);
    QCOMPARE(plan.of("k0").trafficBytes, 0);
    QCOMPARE(plan.cost.sum.summedGradients, 0);
  }

  /// Each collective has one α, except the sums of the norms, which are one bucket: 2 for the embedding (forward and
  /// backward), 10 per layer, 3 for the head's input, 3 for the loss.
  void sumsOfParametersStartOnce() {
    for (const std::int64_t layers : {1, 4}) {
      const std::int64_t starts = 2 + 10 * layers + 3 + 3 + 1;
      const Femtoseconds latency = llamaStep(layers, 1).trafficFs - llamaStep(layers, 0).trafficFs,
                         difference = latency - starts * kSecond;
      QVERIFY2(difference <= starts && -difference <= starts,
               qPrintable(QString::number(static_cast<double>(latency) / 1e15)));
      QCOMPARE(llamaStep(layers, 0).summedGradients, (2 * layers + 1) * 4096 * 4);
    }
  }

  /// A weight that two layers on the sequence share is summed once.
  void aSharedWeightIsSummedOnce() {
    const std::string text =
        onSequence(
            "w.weight: bf16[4096,4096] = parameter @w\nc: bf16[1,8192,4096] = aten::linear(b, w.weight, None) @w\n"
            "e: bf16[1,8192,4096] = aten::linear(c, w.weight, None) @again\n") +
        linear("g", "e", "gate", 4096, 8) + "loss: bf16[] = aten::sum(g)\nreturn loss=loss\n";
    const Priced plan = priced(text, with({"w=whole-on-sequence", "again=whole-on-sequence", "gate=gather+whole"}));
    QCOMPARE(plan.cost.sum.summedGradients, 4096 * 4096 * kItem);
  }

  /// Training needs only the loss, so the full logits (8192·128256) are neither gathered nor kept. A program without a
  /// loss keeps them.
  void logitsAreNotKept() {
    const std::string head =
        "x: bf16[8192,4096] = input\nlabels: i64[8192] = input\nhead.weight: bf16[128256,4096] = parameter @head\n"
        "logits: bf16[8192,128256] = aten::linear(x, head.weight, None) @head\n";
    const std::string loss = "loss: bf16[] = aten::cross_entropy_loss(logits, labels, None, 1, -100, 0.0)\n";
    const Priced plan =
        priced(head + loss + "return loss=loss, logits=logits\n", {"head=column", "loss=vocab"}, Optimizer::Sgd);
    const std::int64_t part = 8192 * 128256 / kRanks * kItem;
    QCOMPARE(plan.of("logits").trafficBytes, std::int64_t{0});
    // The exponentials are saved in float32. The peak is at the backward of the loss, with the gradient of the logits,
    // the loss and its gradient. (The memory of the input is fixed. SGD needs 4 bytes for each of 16032·4096 elements,
    // which is less.)
    QCOMPARE(plan.cost.sum.activations, 2 * part);
    QCOMPARE(plan.cost.transientPeak, part + 2 * kLossBytes);
    QCOMPARE(plan.cost.bytes(), plan.cost.additiveBytes() + plan.cost.transientPeak);
    const Priced without = priced(head + "return logits=logits\n", {"head=column"}, Optimizer::Sgd);
    QCOMPARE(without.of("logits").trafficBytes, 8 * part);
    QVERIFY(without.cost.transientPeak >= 8 * part);
  }

  /// The step saves a and b's part (8 MiB each), and g, u and m (28 MiB each): 100 MiB. The forward peak is at d (a,
  /// b, g, u, m, d: 164 MiB). The backward peak is at up: a, b (g, u, m are freed), the gradients of g and u (56 MiB)
  /// and of b's part (8), b gathered again (64), its full gradient (64), and the loss.
  void thePeakCoversForwardAndBackward() {
    const Priced plan = priced(onSequence(mlp()), with(kMlp), Optimizer::None);
    QCOMPARE(plan.cost.sum.activations, 2 * kHiddenPart + 3 * kFeaturesPart);
    const std::int64_t fullest = 3 * kHiddenPart + 2 * kFeaturesPart + 2 * kHidden + kLossBytes;
    QCOMPARE(plan.cost.sum.activations + plan.cost.transientPeak, fullest);
  }

  /// With 8 positions the peak is after the backward pass, for the replicated weight of 4096·4096 elements on the
  /// sequence: its gradient in the bucket (2 bytes each), or for SGD the gradient in float32 (4), or for AdamW the
  /// gradient in float32, √v and its quotient (12).
  void bucketAndOptimizerCount_data() {
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<qint64>("fullest");
    constexpr qint64 kWeight = 4096 * 4096;
    QTest::newRow("none") << static_cast<int>(Optimizer::None) << 2 * kWeight;
    QTest::newRow("sgd") << static_cast<int>(Optimizer::Sgd) << 4 * kWeight;
    QTest::newRow("adamw") << static_cast<int>(Optimizer::AdamW) << 12 * kWeight;
  }
  void bucketAndOptimizerCount() {
    QFETCH(int, optimizer);
    QFETCH(qint64, fullest);
    const std::string text = "x: bf16[1,8,4096] = input\n" + linear("a", "x", "first", 4096, 4096, 8) +
                             linear("b", "a", "second", 4096, 4096, 8) + linear("c", "b", "third", 4096, 4096, 8) +
                             linear("g", "c", "gate", 4096, 8, 8) + "loss: bf16[] = aten::sum(g)\nreturn loss=loss\n";
    const Priced plan =
        priced(text, with({"third=whole-on-sequence", "gate=gather+whole"}), static_cast<Optimizer>(optimizer));
    QCOMPARE(plan.cost.sum.activations + plan.cost.transientPeak, fullest + kLossBytes);
  }

  /// A budget limits the peak, not only the memory that stays.
  void theBudgetCountsThePeak() {
    auto problem = std::make_shared<Problem>();
    problem->graph = llamaGraph({.layers = 2, .hidden = 64, .sequence = 64});
    problem->context = {
        .worldSize = 2, .candidateSet = rules::CandidateSet::Full, .sequenceParallel = rules::SequenceParallel::Auto};
    problem->cost.isTraining = true;
    problem->cost.slackPercent = 0;
    const auto free = record(problem, {}, {}, Engine::Optimal).result;
    QVERIFY(free.solution);
    const PlanCost fastest = costOf(*problem, *free.solution);
    problem->cost.memoryBudget = fastest.bytes() - 1;
    const auto bound = record(problem, {}, {}, Engine::Optimal).result;
    QVERIFY(bound.solution && costOf(*problem, *bound.solution).bytes() < fastest.bytes());
    problem->cost.memoryBudget = fastest.bytes();
    const auto same = record(problem, {}, {}, Engine::Optimal).result;
    QVERIFY(same.solution);
    QVERIFY(costOf(*problem, *same.solution).femtoseconds() == fastest.femtoseconds());
  }
};

QTEST_APPLESS_MAIN(TestTrainingCost)
#include "tst_training_cost.moc"
