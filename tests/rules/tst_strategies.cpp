/// The forms that a layer may take: which, in which order, with which placements and collectives; and what is refused.
#include "tests/rules/strategy_graphs.h"

#include <QTest>

using namespace cleave;
using namespace cleave::test;

namespace {

QStringList offeredIn(const std::string& text, const StrategyContext& context) {
  const auto asked = ask(text);
  if (!asked) return {};
  QStringList lines;
  for (const auto& option : optionsOf(*asked, context).offered)
    lines << QString::fromStdString(textOf(option, asked->layer));
  return lines;
}

QStringList refusedIn(const std::string& text, const StrategyContext& context) {
  const auto asked = ask(text);
  if (!asked) return {};
  QStringList lines;
  for (const auto& refusal : optionsOf(*asked, context).refused) {
    lines << QString::fromStdString(fmt::format("{}: {}", toText(refusal.strategy), refusal.reason));
  }
  return lines;
}

}  // namespace

Q_DECLARE_METATYPE(StrategyContext)

class TstStrategies : public QObject {
  Q_OBJECT

 private slots:
  void offersTheFormsInTheirOrder_data();
  void offersTheFormsInTheirOrder() {
    QFETCH(std::string, graph);
    QFETCH(StrategyContext, context);
    QFETCH(QStringList, forms);
    QCOMPARE(offeredIn(graph, context), forms);
  }

  void refusesWithTheNumbers_data();
  void refusesWithTheNumbers() {
    QFETCH(std::string, graph);
    QFETCH(StrategyContext, context);
    QFETCH(QStringList, refusals);
    QCOMPARE(refusedIn(graph, context), refusals);
  }

  void cutsFusedColumnsAsWhatFollowsAsks_data();
  void cutsFusedColumnsAsWhatFollowsAsks() {
    QFETCH(std::string, graph);
    QFETCH(int, ranks);
    QFETCH(QString, lane);
    const auto asked = ask(graph);
    QVERIFY(asked);
    QStringList lanes;
    for (const auto& option : optionsOf(*asked, on(ranks, kFull)).offered) {
      if (option.strategy != Strategy::Column || option.result.isPlainSplit()) continue;
      lanes << QString::fromStdString(option.result.text());
      QCOMPARE(option.weight.text(), option.result.shifted(-2).text());
      QCOMPARE(option.bias.text(), option.result.shifted(-2).text());
    }
    QCOMPARE(lanes.join(' '), lane);
  }

  void givesItsReasonsInNumbers_data();
  void givesItsReasonsInNumbers() {
    QFETCH(std::string, graph);
    QFETCH(StrategyContext, context);
    QFETCH(int, index);
    QFETCH(QString, reason);
    const auto asked = ask(graph);
    QVERIFY(asked);
    const auto options = optionsOf(*asked, context);
    QVERIFY(static_cast<int>(options.offered.size()) > index);
    QCOMPARE(QString::fromStdString(options.offered[index].reason), reason);
  }

  void namesReadBackAsWritten() {
    for (int i = 0; i <= static_cast<int>(Strategy::InExpert); ++i) {
      const auto strategy = static_cast<Strategy>(i);
      QVERIFY(rules::parseStrategy(toText(strategy)) == strategy);
    }
    for (const char* text : {"", "Column", "columns", "row ", "column+"}) QVERIFY(!rules::parseStrategy(text));
  }
};

void TstStrategies::offersTheFormsInTheirOrder_data() {
  QTest::addColumn<std::string>("graph");
  QTest::addColumn<StrategyContext>("context");
  QTest::addColumn<QStringList>("forms");
  const auto row = [](const char* name, std::string graph, StrategyContext context, QStringList forms) {
    QTest::newRow(name) << std::move(graph) << context << std::move(forms);
  };
  const std::string plain = linear("2,6", 4, 8);
  row("linear", plain, on(2),
      {"column(R, S(0)) -> S(2)", "whole(R, R) -> R", "row(S(2), S(1)) -> R, all_reduce after"});
  row("linear with a bias", linear("2,6", 4, 8, true), on(2),
      {"column(R, S(0), bias S(0)) -> S(2)", "whole(R, R, bias R) -> R",
       "row(S(2), S(1), bias R) -> R, all_reduce after"});
  row("linear, sequence parallel", plain, on(2, kOptimum, kOn),
      {"column(R, S(0)) -> S(2)", "whole(R, R) -> R", "gather+column(S(1), S(0)) -> S(2), all_gather before",
       "gather+whole(S(1), R) -> R, all_gather before", "row+scatter(S(2), S(1)) -> S(1), reduce_scatter after",
       "row(S(2), S(1)) -> R, all_reduce after"});
  row("linear, the solver decides", plain, on(2, kOptimum, kAuto),
      {"column(R, S(0)) -> S(2)", "whole(R, R) -> R", "gather+column(S(1), S(0)) -> S(2), all_gather before",
       "gather+whole(S(1), R) -> R, all_gather before", "row(S(2), S(1)) -> R, all_reduce after",
       "row+scatter(S(2), S(1)) -> S(1), reduce_scatter after"});
  row("linear, full menu", plain, on(2, kFull),
      {"column(R, S(0)) -> S(2)", "column+gather(R, S(0)) -> R, all_gather after", "whole(R, R) -> R",
       "row(S(2), S(1)) -> R, all_reduce after"});
  row("linear, full menu, sequence parallel", plain, on(2, kFull, kOn),
      {"column(R, S(0)) -> S(2)", "column+gather(R, S(0)) -> R, all_gather after", "whole(R, R) -> R",
       "gather+column(S(1), S(0)) -> S(2), all_gather before", "gather+whole(S(1), R) -> R, all_gather before",
       "whole-on-sequence(S(1), R) -> S(1)", "row+scatter(S(2), S(1)) -> S(1), reduce_scatter after",
       "row(S(2), S(1)) -> R, all_reduce after"});
  row("fused blocks, sequence parallel", fused({8, 4, 4}, 2, "sizes"), on(2, kFull, kOn),
      {"column(R, S(0), bias S(0)) -> S(2)", "column(R, S(0,b[8,4,4]), bias S(0,b[8,4,4])) -> S(2,b[8,4,4])",
       "column+gather(R, S(0), bias S(0)) -> R, all_gather after", "whole(R, R, bias R) -> R",
       "gather+column(S(1), S(0), bias S(0)) -> S(2), all_gather before",
       "gather+column(S(1), S(0,b[8,4,4]), bias S(0,b[8,4,4])) -> S(2,b[8,4,4]), all_gather before",
       "gather+whole(S(1), R, bias R) -> R, all_gather before", "whole-on-sequence(S(1), R, bias R) -> S(1)",
       "row+scatter(S(2), S(1), bias R) -> S(1), reduce_scatter after",
       "row(S(2), S(1), bias R) -> R, all_reduce after"});
  row("fused blocks are for the full menu", fused({8, 4, 4}, 2, "sizes"), on(2),
      {"column(R, S(0), bias S(0)) -> S(2)", "whole(R, R, bias R) -> R",
       "row(S(2), S(1), bias R) -> R, all_reduce after"});
  row("linear on one rank", plain, on(1, kFull, kOn), {"whole(R, R) -> R"});
  row("linear, only the inputs divide", linear("2,6", 4, 9), on(2),
      {"whole(R, R) -> R", "row(S(2), S(1)) -> R, all_reduce after"});
  row("linear, only the outputs divide", linear("2,6", 5, 8), on(2), {"column(R, S(0)) -> S(2)", "whole(R, R) -> R"});
  row("linear, nothing divides", linear("2,7", 5, 9), on(2, kOptimum, kOn), {"whole(R, R) -> R"});
  row("classes are padded", linear("2,6", 5, 9, true), on(2, kFull),
      {"column(R, S(0,pad 1), bias S(0,pad 1)) -> S(2,pad 1)",
       "column+gather(R, S(0,pad 1), bias S(0,pad 1)) -> R, all_gather after", "whole(R, R, bias R) -> R"});
  row("classes are padded, sequence parallel", linear("2,6", 5, 7), on(3, kFull, kOn),
      {"column(R, S(0,pad 2)) -> S(2,pad 2)", "column+gather(R, S(0,pad 2)) -> R, all_gather after", "whole(R, R) -> R",
       "gather+column(S(1), S(0,pad 2)) -> S(2,pad 2), all_gather before",
       "gather+whole(S(1), R) -> R, all_gather before", "whole-on-sequence(S(1), R) -> S(1)"});
  row("fewer classes than ranks are not", linear("2,6", 5, 3), on(4, kFull), {"whole(R, R) -> R"});
  row("classes are padded on the way to the loss", headAndLoss(9), on(2, kFull),
      {"vocab(S(1,pad 1)) -> R", "whole(R) -> R"});
  row("features are not", linear("2,6", 5, 9, false, "z: f32[2,6] = aten::sum.dim_IntList(y, [2])\nreturn z=z\n"),
      on(2, kFull), {"whole(R, R) -> R"});
  row("linear, the sequence does not divide", linear("2,7", 4, 8), on(2, kOptimum, kOn),
      {"column(R, S(0)) -> S(2)", "whole(R, R) -> R", "row(S(2), S(1)) -> R, all_reduce after"});
  row("linear on 2-D activations", linear("12", 4, 8), on(2, kFull, kOn),
      {"column(R, S(0)) -> S(1)", "column+gather(R, S(0)) -> R, all_gather after", "whole(R, R) -> R",
       "row(S(1), S(1)) -> R, all_reduce after"});
  row("linear on 4-D activations", linear("2,3,6", 4, 8), on(2, kOptimum, kOn),
      {"column(R, S(0)) -> S(3)", "whole(R, R) -> R", "gather+column(S(2), S(0)) -> S(3), all_gather before",
       "gather+whole(S(2), R) -> R, all_gather before", "row+scatter(S(3), S(1)) -> S(2), reduce_scatter after",
       "row(S(3), S(1)) -> R, all_reduce after"});
  row("mm", conv1d("aten::mm", "12", 4, 8), on(2),
      {"column(R, S(1)) -> S(1)", "whole(R, R) -> R", "row(S(1), S(0)) -> R, all_reduce after"});
  row("addmm", conv1d("aten::addmm", "12", 4, 8), on(2, kOptimum, kOn),
      {"column(R, S(1), bias S(0)) -> S(1)", "whole(R, R, bias R) -> R",
       "row(S(1), S(0), bias R) -> R, all_reduce after"});
  row("matmul", conv1d("aten::matmul", "2,6", 4, 8), on(2, kOptimum, kOn),
      {"column(R, S(1)) -> S(2)", "whole(R, R) -> R", "gather+column(S(1), S(1)) -> S(2), all_gather before",
       "gather+whole(S(1), R) -> R, all_gather before", "row+scatter(S(2), S(0)) -> S(1), reduce_scatter after",
       "row(S(2), S(0)) -> R, all_reduce after"});
  row("matmul of a vector",
      "x: f32[4] = input\nc.weight: f32[4,8] = parameter\ny: f32[8] = aten::matmul(x, c.weight)\nreturn y=y\n",
      on(2, kFull, kOn),
      {"column(R, S(1)) -> S(0)", "column+gather(R, S(1)) -> R, all_gather after", "whole(R, R) -> R",
       "row(S(0), S(0)) -> R, all_reduce after"});
  row("addmm with a bias that is broadcast",
      "x: f32[12,4] = input\nc.weight: f32[4,8] = parameter\nc.bias: f32[1] = parameter\n"
      "y: f32[12,8] = aten::addmm(c.bias, x, c.weight)\nreturn y=y\n",
      on(2),
      {"column(R, S(1), bias R) -> S(1)", "whole(R, R, bias R) -> R",
       "row(S(1), S(0), bias R) -> R, all_reduce after"});

  const std::string table = embedding("2,6", 16, 4);
  row("embedding", table, on(2), {"vocab(R, S(0)) -> R, all_reduce after"});
  row("embedding, sequence parallel", table, on(2, kOptimum, kOn),
      {"vocab+scatter(R, S(0)) -> S(1), reduce_scatter after", "vocab(R, S(0)) -> R, all_reduce after"});
  row("embedding, the solver decides", table, on(2, kOptimum, kAuto),
      {"vocab(R, S(0)) -> R, all_reduce after", "vocab+scatter(R, S(0)) -> S(1), reduce_scatter after"});
  row("embedding, full menu", table, on(2, kFull), {"vocab(R, S(0)) -> R, all_reduce after", "whole(R, R) -> R"});
  row("embedding, a vocabulary that does not divide", embedding("2,6", 257, 4), on(2, kOptimum, kOn),
      {"whole(R, R) -> R"});
  row("embedding, a padded vocabulary", embedding("2,6", 257, 4), on(3, kFull, kOn),
      {"vocab+scatter(R, S(0,pad 1)) -> S(1), reduce_scatter after", "vocab(R, S(0,pad 1)) -> R, all_reduce after",
       "whole(R, R) -> R"});
  row("embedding, fewer rows than ranks", embedding("2,6", 2, 4), on(3, kFull), {"whole(R, R) -> R"});
  row("embedding, a sequence that does not divide", embedding("2,7", 16, 4), on(2, kOptimum, kOn),
      {"vocab(R, S(0)) -> R, all_reduce after"});
  row("embedding of a flat list of tokens", embedding("12", 16, 4), on(2, kOptimum, kOn),
      {"vocab(R, S(0)) -> R, all_reduce after"});
  row("embedding on one rank", table, on(1), {"whole(R, R) -> R"});

  row("experts", experts(8, 6), on(2, kFull),
      {"by-expert(R, S(0), down S(0)) -> R, all_reduce after",
       "in-expert(R, S(1,b2), down S(2)) -> R, all_reduce after", "whole(R, R, down R) -> R"});
  row("experts, only their features divide", experts(3, 4), on(2, kFull),
      {"in-expert(R, S(1,b2), down S(2)) -> R, all_reduce after", "whole(R, R, down R) -> R"});
  row("experts are for the full menu", experts(8, 6), on(2), {"whole(R, R, down R) -> R"});
  row("experts on one rank", experts(8, 6), on(1, kFull), {"whole(R, R, down R) -> R"});

  row("loss", crossEntropy({}), on(2), {"vocab(S(1)) -> R", "whole(R) -> R"});
  row("loss, full menu, sequence parallel", crossEntropy({}), on(2, kFull, kOn), {"vocab(S(1)) -> R", "whole(R) -> R"});
  row("loss on one rank", crossEntropy({}), on(1), {"whole(R) -> R"});
  row("loss with class weights", crossEntropy({.hasWeights = true}), on(2), {"whole(R) -> R"});
  row("loss that smooths labels", crossEntropy({.smoothing = "0.1"}), on(2), {"whole(R) -> R"});
}

void TstStrategies::refusesWithTheNumbers_data() {
  QTest::addColumn<std::string>("graph");
  QTest::addColumn<StrategyContext>("context");
  QTest::addColumn<QStringList>("refusals");
  const auto row = [](const char* name, std::string graph, StrategyContext context, QStringList refusals) {
    QTest::newRow(name) << std::move(graph) << context << std::move(refusals);
  };
  row("nothing", linear("2,6", 4, 8), on(2, kFull, kOn), {});
  row("one rank", linear("1,1", 1, 1), on(1, kFull, kOn), {});
  row("linear", linear("2,6", 5, 9), on(2),
      {"column: 9 output features do not divide by 2 ranks", "row: 5 input features do not divide by 2 ranks"});
  row("linear, full menu", linear("2,6", 8, 3), on(4, kFull),
      {"column: 3 output features do not divide by 4 ranks",
       "column+gather: 3 output features do not divide by 4 ranks"});
  row("embedding, full menu", embedding("2,6", 257, 4), on(2, kFull), {});
  row("linear, the sequence", linear("2,7", 4, 8), on(2, kFull, kOn),
      {"gather+column: the sequence of 7 does not divide by 2 ranks",
       "gather+whole: the sequence of 7 does not divide by 2 ranks",
       "whole-on-sequence: the sequence of 7 does not divide by 2 ranks",
       "row+scatter: the sequence of 7 does not divide by 2 ranks"});
  row("Conv1D counts by its own axes", conv1d("aten::addmm", "12", 5, 9), on(2),
      {"column: 9 output features do not divide by 2 ranks", "row: 5 input features do not divide by 2 ranks"});
  row("embedding", embedding("2,6", 257, 4), on(2), {"vocab: 257 vocabulary rows do not divide by 2 ranks"});
  row("embedding, sequence parallel", embedding("2,6", 257, 4), on(2, kOptimum, kOn),
      {"vocab+scatter: 257 vocabulary rows do not divide by 2 ranks",
       "vocab: 257 vocabulary rows do not divide by 2 ranks"});
  row("embedding, the sequence", embedding("2,7", 16, 4), on(2, kOptimum, kAuto),
      {"vocab+scatter: the sequence of 7 does not divide by 2 ranks"});
  row("experts", experts(3, 5), on(2, kFull),
      {"by-expert: 3 experts do not divide by 2 ranks",
       "in-expert: 5 features of each expert do not divide by 2 ranks"});
  row("loss, the classes", crossEntropy({.logits = "6,9"}), on(2), {"vocab: 9 classes do not divide by 2 ranks"});
  row("loss, class weights", crossEntropy({.hasWeights = true}), on(2), {"vocab: the loss has class weights"});
  row("loss, smoothed labels", crossEntropy({.smoothing = "0.1"}), on(2),
      {"vocab: the loss smooths its labels by 0.1"});
  row("loss, smoothed labels as an integer", crossEntropy({.smoothing = "1"}), on(2),
      {"vocab: the loss smooths its labels by 1"});
  row("loss, probabilities", crossEntropy({.target = "f32[6,8]"}), on(2), {"vocab: the targets are probabilities"});
  row("loss over images", crossEntropy({.logits = "6,8,5", .target = "i64[6,5]"}), on(2),
      {"vocab: the logits have 3 dimensions instead of [tokens, classes]"});
  row("loss of one sample", crossEntropy({.logits = "8", .target = "i64[]"}), on(2),
      {"vocab: the logits have 1 dimensions instead of [tokens, classes]"});
  row("fused blocks", fused({8, 6}, 2, "sizes"), on(4, kFull),
      {"column: 14 output features do not divide by 4 ranks",
       "column+gather: 14 output features do not divide by 4 ranks"});
  row("fused blocks, the sequence", fused({10, 5, 5}, 5, "sizes"), on(5, kFull, kOn),
      {"gather+column: the sequence of 6 does not divide by 5 ranks",
       "gather+column: the sequence of 6 does not divide by 5 ranks",
       "gather+whole: the sequence of 6 does not divide by 5 ranks",
       "whole-on-sequence: the sequence of 6 does not divide by 5 ranks",
       "row+scatter: 12 input features do not divide by 5 ranks", "row: 12 input features do not divide by 5 ranks"});
  row("fused blocks that fall apart between ranks",
      "x: f32[2,6,12] = input\nfc.weight: f32[14,12] = parameter\ny: f32[2,6,14] = aten::linear(x, fc.weight, None)\n"
      "gate: f32[2,6,7], up: f32[2,6,7] = aten::split.Tensor(y, 7, -1)\nreturn gate=gate, up=up\n",
      on(2, kFull), {"column: 14 output features as S(2,b2): a block of 7 does not divide by 2 ranks"});
}

void TstStrategies::cutsFusedColumnsAsWhatFollowsAsks_data() {
  QTest::addColumn<std::string>("graph");
  QTest::addColumn<int>("ranks");
  QTest::addColumn<QString>("lane");
  const auto row = [](const char* name, std::string graph, int ranks, const char* lane) {
    QTest::newRow(name) << std::move(graph) << ranks << QString(lane);
  };
  row("enough heads", fused({16}, 4, "slice"), 2, "");
  row("fewer heads than ranks", fused({16}, 4, "slice"), 8, "S(2,x2)");
  row("one head", fused({16}, 16, "slice"), 4, "S(2,x4)");
  row("query, key and value alike", fused({6, 6, 6}, 3, "even"), 2, "S(2,b3)");
  row("query, key and value alike, fewer heads than ranks", fused({6, 6, 6}, 3, "even"), 4, "S(2,b3/x2)");
  row("grouped queries by sizes", fused({8, 4, 4}, 2, "sizes"), 2, "S(2,b[8,4,4])");
  row("grouped queries by slices", fused({8, 4, 4}, 2, "slice"), 2, "S(2,b[8,4,4])");
  row("grouped queries, fewer key heads than ranks", fused({8, 4, 4}, 2, "sizes"), 4, "S(2,b[8,4/x2,4/x2])");
  row("gate and up", fused({8, 8}, 1, "sizes"), 4, "S(2,b2)");
  row("heads that share a divisor with the ranks", fused({12, 8}, 2, "sizes"), 4, "S(2,b[12/x2,8])");
  // What does not cut all of the last dimension is no fused projection.
  const std::string head =
      "x: f32[2,6,12] = input\nfc.weight: f32[16,12] = parameter\nfc.bias: f32[16] = parameter\n"
      "y: f32[2,6,16] = aten::linear(x, fc.weight, fc.bias)\na: f32[2,6,8] = aten::slice.Tensor(y, 2, 0, 8, 1)\n";
  row("a gap", head + "b: f32[2,6,4] = aten::slice.Tensor(y, 2, 12, 16, 1)\nreturn a=a, b=b\n", 2, "");
  row("an overlap", head + "b: f32[2,6,12] = aten::slice.Tensor(y, 2, 4, 16, 1)\nreturn a=a, b=b\n", 2, "");
  row("a stride", head + "b: f32[2,6,4] = aten::slice.Tensor(y, 2, 8, 16, 2)\nreturn a=a, b=b\n", 2, "");
  row("another dimension", head + "b: f32[2,3,16] = aten::slice.Tensor(y, 1, 0, 3, 1)\nreturn a=a, b=b\n", 2, "");
  row("another reader",
      head +
          "b: f32[2,6,8] = aten::slice.Tensor(y, 2, 8, 16, 1)\nc: f32[2,6,16] = aten::relu(y)\nreturn a=a, b=b, c=c\n",
      2, "");
  row("bounds from the end",
      head + "b: f32[2,6,8] = aten::slice.Tensor(y, -1, -8, 9223372036854775807, 1)\nreturn a=a, b=b\n", 2, "S(2,b2)");
}

void TstStrategies::givesItsReasonsInNumbers_data() {
  QTest::addColumn<std::string>("graph");
  QTest::addColumn<StrategyContext>("context");
  QTest::addColumn<int>("index");
  QTest::addColumn<QString>("reason");
  const auto row = [](const char* name, std::string graph, StrategyContext context, int index, const char* reason) {
    QTest::newRow(name) << std::move(graph) << context << index << QString(reason);
  };
  row("column", linear("1,4", 8, 4096), on(8), 0, "4096 output features split over 8 ranks, 512 each");
  row("row", linear("1,4", 8, 4096), on(8), 2,
      "8 input features split over 8 ranks, 1 each; the partial sums are added up");
  row("row+scatter", linear("1,4", 8, 4096), on(4, kOptimum, kOn), 4,
      "8 input features split over 4 ranks, 2 each; the partial sums are reduced onto the sequence");
  row("fused", fused({8, 4, 4}, 2, "sizes"), on(2, kFull), 1,
      "16 output features are 3 fused blocks, each split over 2 ranks");
  row("fused, shared heads", fused({8, 4, 4}, 2, "sizes"), on(4, kFull), 1,
      "16 output features are 3 fused blocks, split over 4 ranks; some blocks have heads that several ranks share");
  row("shared heads", fused({16}, 8, "slice"), on(4, kFull), 1,
      "16 output features in 2 parts, each on 2 ranks, because the heads do not divide by 4 ranks");
  row("padded column", linear("1,4", 8, 257), on(2, kFull), 0,
      "257 output features, padded by 1, split over 2 ranks, 129 each");
  row("padded vocab", embedding("1,4", 257, 8), on(3, kFull), 0,
      "257 vocabulary rows, padded by 1, split over 3 ranks, 86 each");
  row("padded loss", crossEntropy({.logits = "6,9"}), on(4, kFull), 0,
      "9 classes, padded by 3, split over 4 ranks, the loss reduces over them inside");
  row("vocab", embedding("1,4", 128, 8), on(4), 0, "128 vocabulary rows split over 4 ranks, 32 each");
  row("loss", crossEntropy({}), on(4), 0, "8 classes split over 4 ranks, the loss reduces over them inside");
  row("one rank", crossEntropy({}), on(1), 0, "one rank: nothing to split");
}

QTEST_APPLESS_MAIN(TstStrategies)
#include "tst_strategies.moc"
