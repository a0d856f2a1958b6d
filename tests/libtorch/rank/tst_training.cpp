/// Gradients of the backward pass, compared with those of all ranks as one function, independently of the plan's
/// backward passes. Also the parts of a step, one by one.
#include "libtorch/rank/training/training.h"

#include "libtorch/rank/execute/fill.h"

#include "tests/libtorch/rank/family_runs.h"

using namespace cleave;
using namespace cleave::tests;
using namespace cleave::torch_rank;

namespace {

PlanPtr trainingPlan(const ModelPtr& model, int ranks, rules::SequenceParallel sequence,
                     const std::vector<std::string>& pins = {}) {
  spec::PlanSpec options;
  options.ranks = ranks;
  options.engine = solve::Engine::Reference;
  options.candidateSet = rules::CandidateSet::Full;
  options.sequenceParallel = sequence;
  options.cost.isTraining = true;
  options.cost.profile = need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  for (const std::string& pin : pins) options.pins.push_back(need(solve::Pin::parse(pin)));
  return need(pipeline::planModel(model, need(pipeline::solveModel(model, options, {}, {.records = false}))));
}

/// By rank, the change of each part in a step of plain SGD with rate 1: its gradient.
std::vector<Tensors> gradientsOf(const plan::Plan& plan, const fs::path& inputs, program::Training training,
                                 const std::optional<Batches>& made = {}) {
  std::vector<Tensors> gradients(static_cast<std::size_t>(plan.spec.ranks));
  training.steps = 1;
  training.optimizer = program::Optimizer::Sgd;
  training.learningRate = 1;
  const auto stepOne = [&](Collectives& collectives) {
    Program bound = loaded(plan, inputs, collectives.rank());
    Batches batches = made ? *made : need(Batches::read(bound, inputs));
    Tensors before;
    for (const program::ParameterShards& parameter : plan.parameters)
      before[parameter.name] = bound.given(bound.graph().findValue(parameter.name)).clone();
    Trainer trainer(bound, *plan.backward, training, batches);
    LiveMemory memory;
    need(trainer.step(collectives, memory));
    for (auto& [name, tensor] : before)
      gradients[static_cast<std::size_t>(collectives.rank())][name] =
          tensor - bound.given(bound.graph().findValue(name));
  };
  if (plan.spec.ranks == 1) {
    stepOne(*makeSoloCollectives());
  } else {
    asRanks(plan.spec.ranks, stepOne);
  }
  return gradients;
}

}  // namespace

class TestTraining : public QObject {
  Q_OBJECT
 private slots:
  void gradientsAreThoseOfOneFunction_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<QStringList>("pins");
    const auto row = [](const char* name, int ranks, rules::SequenceParallel sequence, const QStringList& pins = {}) {
      QTest::addRow("%s on %d, sequence %d %s", name, ranks, static_cast<int>(sequence), qPrintable(pins.join(' ')))
          << name << ranks << static_cast<int>(sequence) << pins;
    };
    using enum rules::SequenceParallel;
    for (const char* name : {"llama", "gpt2", "gemma2", "bert", "falcon-40b", "gpt_oss"}) {
      row(name, 2, Off);
      row(name, 4, On);
    }
    row("mixtral", 2, Off, {"*.experts==in-expert"});
    row("mixtral", 4, Off, {"*.experts==by-expert"});
    row("llama-one-kv-head", 4, Off);
    row("llama-one-kv-head", 4, On);
    row("falcon", 2, Off);
    row("deepseek_v3", 2, Off);
    row("llama", 2, Off, {"lm_head=column+gather", "*.down_proj=whole"});
    row("llama", 2, On, {"*.gate_proj=whole", "*.up_proj=column"});
    row("bert-classification", 2, Off);
  }
  void gradientsAreThoseOfOneFunction() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(int, sequence);
    QFETCH(QStringList, pins);
    const fs::path folder = fs::path(CLEAVE_TEST_DATA) / "families" / name.toStdString();
    const fs::path inputs = folder / "expected.safetensors";
    std::vector<std::string> asked;
    for (const QString& pin : pins) asked.push_back(pin.toStdString());
    const auto plan =
        trainingPlan(openedFor(folder, inputs), ranks, static_cast<rules::SequenceParallel>(sequence), asked);
    QVERIFY(plan->backward);
    const TrainingStep oracle = trained(*plan, inputs, 0.0);
    const std::vector<Tensors> gradients = gradientsOf(*plan, inputs, {});
    for (int rank = 0; rank < ranks; ++rank) {
      for (const auto& [parameter, expected] : oracle.gradients[static_cast<std::size_t>(rank)]) {
        const at::Tensor& gradient = gradients[static_cast<std::size_t>(rank)].at(parameter);
        QVERIFY2(at::allclose(gradient, expected, 1e-3, 2e-6),
                 fmt::format("{} on rank {}: {}", parameter, rank, where(gradient, expected)).c_str());
      }
    }
  }

  void clippingCountsWhatRanksShareOnce_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"llama", "llama-one-kv-head", "falcon", "mixtral", "gpt2"}) QTest::newRow(name) << name;
  }
  void clippingCountsWhatRanksShareOnce() {
    QFETCH(QString, name);
    const fs::path folder = fs::path(CLEAVE_TEST_DATA) / "families" / name.toStdString();
    const fs::path inputs = folder / "expected.safetensors";
    const ModelPtr model = openedFor(folder, inputs);
    program::Training training;
    training.clipNorm = 0.25;
    const auto normOf = [](const Tensors& gradients) {
      double squares = 0;
      for (const auto& [parameter, gradient] : gradients)
        squares += gradient.to(at::kDouble).square().sum().item<double>();
      return std::sqrt(squares);
    };
    const auto whole = gradientsOf(*trainingPlan(model, 1, rules::SequenceParallel::Off), inputs, training)[0];
    QVERIFY(std::abs(normOf(whole) - 0.25) < 1e-4);
    const auto plan = trainingPlan(model, 4, rules::SequenceParallel::Off);
    const auto parts = gradientsOf(*plan, inputs, training);
    for (const program::ParameterShards& parameter : plan->parameters) {
      for (int rank = 0; rank < 4; ++rank) {
        const at::Tensor expected = partOf(parameter, whole.at(parameter.name), 4, rank);
        const at::Tensor& part = parts[static_cast<std::size_t>(rank)].at(parameter.name);
        QVERIFY2(at::allclose(part, expected, 1e-3, 1e-6),
                 fmt::format("{} on rank {}: {}", parameter.name, rank, where(part, expected)).c_str());
      }
    }
  }

  void gradientsOfMicroBatchesAreAveraged() {
    const fs::path folder = fs::path(CLEAVE_TEST_DATA) / "families/llama";
    const fs::path inputs = folder / "expected.safetensors";
    const auto plan = trainingPlan(openedFor(folder, inputs), 2, rules::SequenceParallel::Off);
    program::Training twice;
    twice.accumulate = 2;
    constexpr std::uint64_t kSeed = 5;
    const auto both = gradientsOf(*plan, inputs, twice, Batches::made(kSeed, 2));
    const auto first = gradientsOf(*plan, inputs, {}, Batches::made(kSeed, 1));
    const auto second = gradientsOf(*plan, inputs, {}, Batches::made(streamKey(kSeed, "1"), 1));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (const auto& [name, gradient] : both[rank]) {
        const at::Tensor expected = (first[rank].at(name) + second[rank].at(name)) / 2;
        QVERIFY2(at::allclose(gradient, expected, 1e-3, 1e-6), (name + ": " + where(gradient, expected)).c_str());
        QVERIFY(!at::allclose(first[rank].at(name), second[rank].at(name)));
      }
    }
  }

  void lossGradientEqualsTheWholeOnes_data() {
    QTest::addColumn<int>("reduction");
    QTest::addColumn<QString>("labels");
    for (int reduction : {0, 1, 2}) {
      for (const char* labels : {"all", "some ignored"})
        QTest::addRow("reduction %d, %s", reduction, labels) << reduction << labels;
    }
  }
  void lossGradientEqualsTheWholeOnes() {
    QFETCH(int, reduction);
    QFETCH(QString, labels);
    const at::Tensor logits = at::randn({7, 20}) * 10;
    at::Tensor target = at::randint(0, 20, {7}, at::kLong);
    if (labels == "some ignored") target.slice(0, 2, 4).fill_(-100);
    at::Tensor leaf = logits.clone().requires_grad_(true);
    const at::Tensor whole = at::cross_entropy_loss(leaf, target, {}, reduction, -100, 0.0);
    const at::Tensor weights = reduction == 0 ? at::randn({7}) : at::randn({});
    whole.backward(weights);
    for (const std::int64_t columns : {20, 24}) {  // the last four of 24 are padding
      std::vector<at::Tensor> parts(4);
      const at::Tensor wide = columns == 20 ? logits : at::cat({logits, at::full({7, 4}, 1e4)}, 1);
      asRanks(4, [&](Collectives& c) {
        const c10::AutoGradMode none(false);
        auto loss = need(vocabLoss({wide.chunk(4, 1)[c.rank()],
                                    target,
                                    {},
                                    std::int64_t{reduction},
                                    std::int64_t{-100},
                                    0.0,
                                    std::int64_t{20}},
                                   c));
        parts[static_cast<std::size_t>(c.rank())] = vocabLossGradient(std::move(loss), weights);
      });
      const at::Tensor gradient = at::cat(parts, 1);
      const at::Tensor real = gradient.slice(1, 0, 20);
      QVERIFY2(at::allclose(real, leaf.grad(), 1e-4, 1e-6), where(real, leaf.grad()).c_str());
      QVERIFY(columns == 20 || gradient.slice(1, 20, 24).eq(0).all().item<bool>());
    }
  }

  void neighboursAddUpAmongThemselves() {
    std::vector<at::Tensor> sums(4);
    asRanks(4, [&](Collectives& c) {
      Collectives* const pair = need(c.neighbours(2));
      QCOMPARE(pair->worldSize(), 2);
      sums[static_cast<std::size_t>(c.rank())] = need(pair->allReduce(at::full({3}, 1 << c.rank()), Reduction::Sum));
      QCOMPARE(c.counts().allReduce, std::int64_t(1));
      QCOMPARE(need(c.neighbours(2)), pair);
      QCOMPARE(need(c.neighbours(4)), &c);
      QCOMPARE(need(c.neighbours(1))->worldSize(), 1);
    });
    for (int rank = 0; rank < 4; ++rank)
      QCOMPARE(sums[static_cast<std::size_t>(rank)][0].item<double>(), rank < 2 ? 3.0 : 12.0);
  }

  /// Like torch.optim for a parameter without a gradient: weight decay does not change it.
  void parametersWithoutGradientDoNotChange_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("ranks");
    // The loss reads only the norm's mean, which does not depend on its weight.
    const QString given = "x: f32[2,4] = input\nq: f32[4] = parameter\np: f32[4] = parameter\n";
    QTest::newRow("one rank") << given +
                                     "mul_0: f32[2,4] = aten::mul.Tensor(x, q)\n"
                                     "y: f32[2,4], mean: f32[2,1], rstd: f32[2,1] = "
                                     "aten::native_layer_norm(mul_0, [4], p, None, 1e-05)\n"
                                     "add_0: f32[2,4] = aten::add.Tensor(mul_0, mean, 1)\n"
                                     "sum_0: f32[] = aten::sum(add_0, None)\n"
                                     "return loss=sum_0\n"
                              << 1;
    QTest::newRow("two ranks that add up gradients") << given +
                                                            "all_q: f32[4] = cleave::grad_all_reduce(q)\n"
                                                            "all_p: f32[4] = cleave::grad_all_reduce(p)\n"
                                                            "shard_0: f32[1,4] = cleave::shard(x, 0)\n"
                                                            "mul_0: f32[1,4] = aten::mul.Tensor(shard_0, all_q)\n"
                                                            "y: f32[1,4], mean: f32[1,1], rstd: f32[1,1] = "
                                                            "aten::native_layer_norm(mul_0, [4], all_p, None, 1e-05)\n"
                                                            "add_0: f32[1,4] = aten::add.Tensor(mul_0, mean, 1)\n"
                                                            "sum_0: f32[] = aten::sum(add_0, None)\n"
                                                            "all_reduce_0: f32[] = cleave::all_reduce(sum_0)\n"
                                                            "return loss=all_reduce_0\n"
                                                     << 2;
  }
  void parametersWithoutGradientDoNotChange() {
    QFETCH(QString, text);
    QFETCH(int, ranks);
    const auto graph = std::make_shared<const graph::Graph>(need(graph::parseGraph(text.toStdString())));
    const auto backward = need(program::backwardOf(*graph, {}, ranks));
    QVERIFY(backward.gradients.of(graph->findValue("p")));
    program::Training training;
    training.steps = 1;
    training.learningRate = 0.5;
    training.weightDecay = 0.1;
    const auto check = [&](Collectives& collectives) {
      Program bound = need(Program::bind(graph, at::kCPU));
      for (const char* name : {"p", "q"})
        needDone(bound.setTensor(graph->findValue(name), at::full({4}, 3.0, at::kFloat)));
      const Batches batches = Batches::made(0, 1);
      Trainer trainer(bound, backward, training, batches);
      LiveMemory memory;
      need(trainer.step(collectives, memory));
      QVERIFY(bound.given(graph->findValue("p")).eq(3.0).all().item<bool>());
      QVERIFY(!bound.given(graph->findValue("q")).eq(3.0).any().item<bool>());
    };
    if (ranks == 1)
      check(*makeSoloCollectives());
    else
      asRanks(ranks, check);
  }

  void counterpartsAddUpAcrossTheGroups() {
    std::vector<at::Tensor> sums(4);
    asRanks(4, [&](Collectives& c) {
      Collectives* const across = need(c.counterparts(2));
      QCOMPARE(across->worldSize(), 2);
      QCOMPARE(across->rank(), c.rank() / 2);
      sums[static_cast<std::size_t>(c.rank())] = need(across->allReduce(at::full({3}, 1 << c.rank()), Reduction::Sum));
      QCOMPARE(c.counts().allReduce, std::int64_t(1));
      QCOMPARE(need(c.counterparts(2)), across);
      QCOMPARE(need(c.counterparts(1)), &c);
      QCOMPARE(need(c.counterparts(4))->worldSize(), 1);
      // Calls of a part, and of a part of a part, count in the full group.
      QCOMPARE(need(across->neighbours(1))->worldSize(), 1);
      need(need(need(c.neighbours(2))->neighbours(1))->allReduce(at::ones({1}), Reduction::Sum));
      QCOMPARE(c.counts().allReduce, std::int64_t(2));
    });
    for (int rank = 0; rank < 4; ++rank)
      QCOMPARE(sums[static_cast<std::size_t>(rank)][0].item<double>(), rank % 2 == 0 ? 5.0 : 10.0);
  }
};

QTEST_GUILESS_MAIN(TestTraining)
#include "tst_training.moc"
