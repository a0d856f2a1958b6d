/// The rank's parts in one process: programs, collectives over Gloo between threads, parallel layers compared with
/// unsplit ones.
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/execute/tensor_digest.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "tests/libtorch/rank/ranks_as_threads.h"
#include "tests/support/cases.h"
#include "tests/support/patience.h"

#include <ATen/ATen.h>

#include <QTest>

using namespace cleave;
using namespace cleave::tests;
using namespace cleave::torch_rank;
using cleave::test::kPatience;

namespace {

/// The loss only, from the arguments of the operator.
Result<at::Tensor> vocabCrossEntropy(const at::Tensor& logits, const at::Tensor& target, LossReduction reduction,
                                     std::int64_t ignoreIndex, std::int64_t vocabulary, Collectives& collectives) {
  return vocabLoss({logits, target, {}, static_cast<std::int64_t>(reduction), ignoreIndex, 0.0, vocabulary},
                   collectives)
      .map([](const VocabLoss& loss) { return loss.loss; });
}

const char* const kMlp =
    "x: f32[3,8] = input\n"
    "up.weight: f32[16,8] = parameter @up\n"
    "down.weight: f32[8,16] = parameter @down\n"
    "linear_0: f32[3,16] = aten::linear(x, up.weight, None) @up\n"
    "relu_0: f32[3,16] = aten::relu(linear_0)\n"
    "linear_1: f32[3,8] = aten::linear(relu_0, down.weight, None) @down\n"
    "return y=linear_1\n";

/// The same on one of `n` ranks: column, then row.
std::string splitMlp(int n) {
  const std::string part = std::to_string(16 / n);
  return "x: f32[3,8] = input\n"
         "up.weight: f32[" +
         part +
         ",8] = parameter @up\n"
         "down.weight: f32[8," +
         part +
         "] = parameter @down\n"
         "linear_0: f32[3," +
         part +
         "] = aten::linear(x, up.weight, None) @up\n"
         "relu_0: f32[3," +
         part +
         "] = aten::relu(linear_0)\n"
         "linear_1: f32[3,8] = aten::linear(relu_0, down.weight, None) @down\n"
         "all_reduce_0: f32[3,8] = cleave::all_reduce(linear_1) @down\n"
         "return y=all_reduce_0\n";
}

/// The error of a program that cannot run.
std::string refusalOf(const test::Case& asked) {
  const auto program = Program::bind(test::parsedGraph(asked.question), at::kCPU);
  if (program) return "a program";
  return (program.error().code == ErrorCode::BadInput ? "bad input: " : "not a matter of input: ") +
         program.error().message;
}

}  // namespace

class ExecTest : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"libtorch/rank", {{"refusals", refusalOf}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }

  // c10d's flight recorder does not support several ranks in one process.
  void init() { at::manual_seed(7); }

  void runsAProgramLikeATen() {
    Program program = bound(kMlp);
    const at::Tensor x = at::randn({3, 8}), up = at::randn({16, 8}), down = at::randn({8, 16});
    give(program, "x", x);
    give(program, "up.weight", up);
    give(program, "down.weight", down);
    const auto outputs = runAlone(program);
    QCOMPARE(outputs.size(), std::size_t(1));
    QCOMPARE(outputs[0].first, std::string("y"));
    COMPARE_TENSORS(outputs[0].second, at::linear(at::relu(at::linear(x, up)), down), 1e-6);
    COMPARE_TENSORS(runAlone(program)[0].second, outputs[0].second, 0);
  }

  void turnsEveryKindOfArgumentIntoItsSchemasType() {
    Program program = bound(
        "x: f32[2,3,4] = input\n"
        "i: i64[2] = input\n"
        "permute_0: f32[2,4,3] = aten::permute(x, [0, 2, 1])\n"
        "view_0: f32[24] = aten::view(permute_0, [24])\n"
        "add_0: f32[24] = aten::add.Scalar(view_0, 1.5)\n"
        "mul_0: f32[24] = aten::mul.Tensor(add_0, 2)\n"
        "sum_0: f32[2,1,4] = aten::sum.dim_IntList(x, [1], true)\n"
        "_to_copy_0: f64[2,1,4] = aten::_to_copy(sum_0, :f64)\n"
        "index_0: f32[2,3,2] = aten::index.Tensor(x, [None, None, i])\n"
        "cat_0: f32[4,3,4] = aten::cat([x, x])\n"
        "slice_0: f32[2,3,2] = aten::slice.Tensor(x, 2, 1, 3)\n"
        "return a=mul_0, b=_to_copy_0, c=index_0, d=cat_0, e=slice_0\n");
    const at::Tensor x = at::randn({2, 3, 4});
    const at::Tensor i = at::tensor(std::vector<std::int64_t>{3, 0});
    give(program, "x", x);
    give(program, "i", i);
    const auto outputs = runAlone(program);
    COMPARE_TENSORS(outputs[0].second, (x.permute({0, 2, 1}).reshape({24}) + 1.5) * 2, 0);
    COMPARE_TENSORS(outputs[1].second, x.sum(1, true).to(at::kDouble), 0);
    COMPARE_TENSORS(outputs[2].second, x.index_select(2, i), 0);
    COMPARE_TENSORS(outputs[3].second, at::cat({x, x}), 0);
    COMPARE_TENSORS(outputs[4].second, x.slice(2, 1, 3), 0);
  }

  void namesTheNodeThatFails() {
    Program program = bound(
        "w: f32[4,2] = parameter\ni: i64[3] = input\n"
        "embedding_0: f32[3,2] = aten::embedding(w, i) @model.embed\nreturn y=embedding_0\n");
    give(program, "w", at::ones({4, 2}));
    give(program, "i", at::tensor(std::vector<std::int64_t>{0, 9, 1}));
    LiveMemory memory;
    const auto outputs = program.run(*makeSoloCollectives(), memory);
    QVERIFY(!outputs);
    for (const char* words : {"embedding_0", "model.embed", "w f32[4,2]"}) {
      QVERIFY2(outputs.error().message.find(words) != std::string::npos, outputs.error().message.c_str());
    }
    QVERIFY(outputs.error().message.find('\n') == std::string::npos);
  }

  void refusesResultsThatAreNotAsPlanned() {
    Program program = bound("x: f32[2,2] = input\nrelu_0: f32[4,1] = aten::relu(x)\nreturn y=relu_0\n");
    give(program, "x", at::ones({2, 2}));
    LiveMemory memory;
    const auto outputs = program.run(*makeSoloCollectives(), memory);
    QVERIFY(!outputs && outputs.error().message.find("f32[2,2]") != std::string::npos);
    QVERIFY(!program.setTensor(program.graph().findValue("x"), at::ones({3, 2})));
  }

  void stopsWhenAsked() {
    Program program = bound(kMlp);
    for (const char* name : {"x", "up.weight", "down.weight"})
      give(program, name, at::zeros(program.graph().shapeOf(program.graph().findValue(name))));
    std::stop_source stop;
    stop.request_stop();
    LiveMemory memory;
    const auto outputs = program.run(*makeSoloCollectives(), memory, Progress(stop.get_token()));
    QVERIFY(!outputs);
    QCOMPARE(outputs.error().code, ErrorCode::Cancelled);
  }

  void countsLiveMemoryByStorageAndFreesTheDead() {
    Program program = bound(
        "x: f32[1024] = input\n"
        "relu_0: f32[1024] = aten::relu(x)\n"                     // 4 KiB live
        "view_0: f32[32,32] = aten::view(relu_0, [32, 32])\n"     // the same memory
        "view_1: f32[1024] = aten::view(x, [1024])\n"             // the input's memory
        "add_0: f32[32,32] = aten::add.Tensor(view_0, view_0)\n"  // 8 KiB while it runs
        "exp_0: f32[32,32] = aten::exp(add_0)\n"                  // 8 KiB: relu_0 is freed
        "return y=exp_0, z=view_1\n");
    give(program, "x", at::randn({1024}));
    LiveMemory memory;
    need(program.run(*makeSoloCollectives(), memory));
    QCOMPARE(memory.peakBytes(), std::int64_t(8192));
    QCOMPARE(memory.liveBytes(), std::int64_t(4096));
    QCOMPARE(memory.currentNode(), -1);
  }

  void allocatorsViewSeesTemporariesToo() {
    AllocationCounter counter;
    { const at::Tensor a = at::empty({1 << 20}, at::kFloat); }
    QVERIFY(counter.peak() >= 4 << 20);
    QVERIFY(counter.allocated() < 4 << 20);
    QVERIFY(processMemory().rss > 0 && processMemory().peakRss >= processMemory().rss / 2);
    QVERIFY(proportionalSetSize() > 0);
    QVERIFY(counter.largest() >= 4 << 20);
    counter.resetLargest();
    { const at::Tensor b = at::empty({256}, at::kFloat); }
    QCOMPARE(counter.largest(), std::int64_t(1024));
  }

  /// Recognised by the allocator's exception type, not by its message.
  void runningOutOfMemoryIsTheMachinesFault() {
    const AllocationCounter counter;
    Program program = bound(
        "x: f32[1] = input\nexpand_0: f32[1099511627776,1024] = aten::expand(x, [1099511627776, 1024])\n"
        "clone_0: f32[1099511627776,1024] = aten::clone(expand_0)\nreturn y=clone_0\n");
    give(program, "x", at::ones({1}));
    LiveMemory memory;
    const auto outputs = program.run(*makeSoloCollectives(), memory);
    QVERIFY(!outputs);
    QCOMPARE(outputs.error().code, ErrorCode::Environment);
    QVERIFY2(outputs.error().message.find("Cannot allocate 4 PiB: there is no memory left") != std::string::npos,
             outputs.error().message.c_str());
  }

  void aDeviceThatFailsDoesNotEndTheSampling() {
    std::atomic<int> samples = 0;
    {
      MemorySampler sampler(
          [](protocol::MemorySample&) { throw std::runtime_error("CUDA error: unspecified launch failure"); },
          [&](const protocol::Message& message) {
            if (const auto* sample = std::get_if<protocol::MemorySample>(&message)) samples += sample->rss > 0;
          });
      QTRY_VERIFY_WITH_TIMEOUT(samples > 2, kPatience);
    }
  }

  void collectivesReturnTheirResults_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("type");
    for (int ranks : {1, 2, 3, 4}) {
      for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong}) {
        QTest::addRow("%d ranks, %s", ranks, c10::toString(type)) << ranks << static_cast<int>(type);
      }
    }
  }
  void collectivesReturnTheirResults() {
    QFETCH(int, ranks);
    QFETCH(int, type);
    const auto dtype = static_cast<at::ScalarType>(type);
    std::vector<at::Tensor> parts;
    for (int r = 0; r < ranks; ++r) parts.push_back(at::randint(-8, 8, {2, 3 * ranks, 4}).to(dtype));
    const at::Tensor all = at::stack(parts);
    std::atomic<int> failures = 0;
    const auto check = [&](Collectives& c) {
      const auto same = [&](const Result<at::Tensor>& got, const at::Tensor& wanted) {
        if (!got || got->scalar_type() != dtype || !at::equal(*got, wanted.to(dtype))) ++failures;
      };
      const at::Tensor& mine = parts[c.rank()];
      const at::Tensor before = mine.clone();
      same(c.allReduce(mine, Reduction::Sum), all.sum(0));
      same(c.allReduce(mine, Reduction::Max), all.amax(0));
      for (std::int64_t dim : {0, 1, 2, -1}) same(c.allGather(mine, dim), at::cat(parts, dim));
      same(c.reduceScatter(mine, 1), all.sum(0).chunk(ranks, 1)[c.rank()]);
      same(c.allReduce(mine.transpose(0, 2), Reduction::Sum), all.sum(0).transpose(0, 2));
      if (!at::equal(mine, before)) ++failures;  // another rank still read it, so it must not be overwritten
      if (c.counts().allReduce != 3 || c.counts().allGather != 4 || c.counts().reduceScatter != 1) ++failures;
      // All ranks refuse sizes that do not divide, before any of them sends.
      if (ranks == 3 && c.reduceScatter(mine, 2)) ++failures;
      if (c.allGather(mine, 3) || c.reduceScatter(mine, -4)) ++failures;
    };
    if (ranks == 1) {
      check(*makeSoloCollectives());
    } else {
      asRanks(ranks, check);
    }
    QCOMPARE(failures.load(), 0);
  }

  void columnThenRowEqualsTheWholeMlp_data() {
    QTest::addColumn<int>("ranks");
    for (int ranks : {2, 4}) QTest::addRow("%d ranks", ranks) << ranks;
  }
  void columnThenRowEqualsTheWholeMlp() {
    QFETCH(int, ranks);
    const at::Tensor x = at::randn({3, 8}), up = at::randn({16, 8}), down = at::randn({8, 16});
    const at::Tensor whole = at::linear(at::relu(at::linear(x, up)), down);
    std::vector<at::Tensor> results(ranks);
    std::vector<CollectiveCounts> counts(ranks);
    asRanks(ranks, [&](Collectives& c) {
      Program program = bound(splitMlp(ranks));
      give(program, "x", x);
      give(program, "up.weight", up.chunk(ranks, 0)[c.rank()]);
      give(program, "down.weight", down.chunk(ranks, 1)[c.rank()]);
      LiveMemory memory;
      results[c.rank()] = need(program.run(c, memory))[0].second;
      counts[c.rank()] = c.counts();
    });
    for (int rank = 0; rank < ranks; ++rank) {
      COMPARE_TENSORS(results[rank], whole, 1e-5);
      QCOMPARE(digest(results[rank]), digest(results[0]));
      QCOMPARE(counts[rank].allReduce, std::int64_t(1));
    }
  }

  void vocabularyEmbeddingEqualsTheWholeOne_data() { columnThenRowEqualsTheWholeMlp_data(); }
  void vocabularyEmbeddingEqualsTheWholeOne() {
    QFETCH(int, ranks);
    const at::Tensor weight = at::randn({20, 6}), ids = at::randint(0, 20, {2, 5}, at::kLong);
    at::Tensor sum = at::zeros({2, 5, 6});
    for (int rank = 0; rank < ranks; ++rank)
      sum += need(vocabEmbedding(weight.chunk(ranks, 0)[rank], ids, 20, -1, rank));
    COMPARE_TENSORS(sum, at::embedding(weight, ids), 0);
    QVERIFY(!vocabEmbedding(weight.chunk(ranks, 0)[0], at::full({1}, 20, at::kLong), 20, -1, 0));
    QVERIFY(!vocabEmbedding(weight.chunk(ranks, 0)[0], at::full({1}, -1, at::kLong), 20, -1, 0));
  }

  void vocabularyLossEqualsTheWholeOne_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("reduction");
    QTest::addColumn<QString>("labels");
    for (int ranks : {2, 4}) {
      for (int reduction : {0, 1, 2}) {
        for (const char* labels : {"all", "some ignored", "all ignored"}) {
          QTest::addRow("%d ranks, reduction %d, %s", ranks, reduction, labels) << ranks << reduction << labels;
        }
      }
    }
  }
  void vocabularyLossEqualsTheWholeOne() {
    QFETCH(int, ranks);
    QFETCH(int, reduction);
    QFETCH(QString, labels);
    // The logits are large enough that exponentials would overflow without subtracting the maximum.
    const at::Tensor logits = at::randn({7, 20}) * 100;
    at::Tensor target = at::randint(0, 20, {7}, at::kLong);
    if (labels == "some ignored") target.slice(0, 2, 4).fill_(-100);
    if (labels == "all ignored") target.fill_(-100);
    const at::Tensor whole = at::cross_entropy_loss(logits, target, {}, reduction, -100, 0.0);
    std::vector<at::Tensor> results(ranks), padded(ranks);
    std::vector<std::int64_t> calls(ranks);
    asRanks(ranks, [&](Collectives& c) {
      const auto kind = static_cast<LossReduction>(reduction);
      results[c.rank()] = need(vocabCrossEntropy(logits.chunk(ranks, 1)[c.rank()], target, kind, -100, 20, c));
      calls[c.rank()] = c.counts().allReduce;
      // A vocabulary of 20 padded to 24: values in the padding must not count.
      const at::Tensor wide = at::cat({logits, at::full({7, 4}, 1e4)}, 1);
      padded[c.rank()] = need(vocabCrossEntropy(wide.chunk(ranks, 1)[c.rank()], target, kind, -100, 20, c));
    });
    for (int rank = 0; rank < ranks; ++rank) {
      COMPARE_TENSORS(results[rank], whole, 1e-5);
      COMPARE_TENSORS(padded[rank], whole, 1e-5);
      QCOMPARE(calls[rank], std::int64_t(3));
    }
  }

  void vocabularyLossRefusesLabelsOutsideTheVocabulary() {
    const auto solo = makeSoloCollectives();
    const auto loss = vocabCrossEntropy(at::randn({2, 4}), at::tensor(std::vector<std::int64_t>{1, 7}),
                                        LossReduction::Mean, -100, 4, *solo);
    QVERIFY(!loss && loss.error().message.find("label 7") != std::string::npos);
    QVERIFY(std::isnan(need(vocabCrossEntropy(at::full({2, 4}, std::nan("")), at::zeros({2}, at::kLong),
                                              LossReduction::Sum, -100, 4, *solo))
                           .item<double>()));
  }
};

QTEST_GUILESS_MAIN(ExecTest)
#include "tst_interpreter.moc"
