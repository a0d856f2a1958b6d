#include "rules/examples.h"
#include "rules/rule_text.h"

#include <QTest>

#include <set>

using namespace cleave;

namespace {

/// The verdict on a call written as text, as text.
QString judge(const QString& text) {
  const auto call = rules::parseCall(text.toStdString());
  if (!call) return QString::fromStdString(call.error().message);
  const auto graph = rules::oneNodeGraph(*call);
  if (!graph) return QString::fromStdString(graph.error().message);
  std::vector<rules::Placement> placements;
  for (const auto& operand : call->operands) placements.push_back(operand.placement);
  const graph::NodeId node(graph->nodes.size() - 1);
  return QString::fromStdString(rules::toText(rules::applyRule({*graph, node, placements, call->ranks})));
}

}  // namespace

class TstRules : public QObject {
  Q_OBJECT

 private slots:
  void explainsItsConflicts_data() {
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("sentence");
    const auto row = [](const char* call, const char* sentence) { QTest::newRow(call) << call << sentence; };
    row("aten::add.Tensor(f32[1,128,4096] S(2), f32[4096]) -> f32[1,128,4096] @2",
        "conflict: `add` needs its inputs split the same way: the first is S(2), the second is whole and has 4096 "
        "elements "
        "there, so it would have to be cut.");
    row("aten::add.Tensor(f32[2,4] S(0), f32[2,4] S(1)) -> f32[2,4] @2",
        "conflict: `add` needs its inputs split the same way: the first is S(0), the second is S(1).");
    row("aten::sum.dim_IntList(f32[2,8] S(1), [1]) -> f32[2] @2",
        "conflict: `sum` sums over dimension 1 of its input, which is S(1) (8 elements): no rank holds all of it.");
    row("aten::view(f32[1,10,24] S(2), [1,10,8,3]) -> f32[1,10,8,3] @3",
        "conflict: `view` turns [1, 10, 24], which is S(2), into [1, 10, 8, 3]: 8 heads do not split over 3 ranks, the "
        "cut "
        "would fall inside a head.");
    row("aten::scaled_dot_product_attention(f32[1,4,8,16] S(1), f32[1,2,8,16], f32[1,2,8,16], None, 0.0, true, None, "
        "true) -> f32[1,4,8,16] @2",
        "conflict: `scaled_dot_product_attention` needs its inputs split the same way: the query is S(1), the key is "
        "whole and "
        "has 2 elements there, so it would have to be cut.");
    row("aten::relu(f32[12] S(0)) -> f32[12] @8",
        "conflict: `relu`: its input [12] cannot be S(0): 12 does not divide by 8 ranks.");
    row("other::thing(f32[4] S(0)) -> f32[4] @2",
        "conflict: There is no rule for `other::thing` yet, so its inputs must be whole; its input is S(0).");
    row("aten::squeeze.dim(f32[2,8] S(0), 0) -> f32[2,8] @2",
        "conflict: `squeeze` would drop dimension 0 on the ranks: it has 2 elements and S(0) leaves one of them on "
        "each.");
  }
  void explainsItsConflicts() {
    QFETCH(QString, call);
    QFETCH(QString, sentence);
    QCOMPARE(judge(call), sentence);
  }

  /// By name, so that none is lost: the 103 of the reference's registry, then what models decompose to beside them.
  /// That a claim of each was run on tensors is checked by tst_rules_property.
  void knowsTheOperatorsOfModels() {
    const std::vector<std::string> reference = {
        "pow.Tensor_Scalar",
        "rsqrt",
        "clone",
        "bitwise_not",
        "abs",
        "_to_copy",
        "acos",
        "acosh",
        "alias",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "clamp",
        "cos",
        "cosh",
        "erf",
        "exp",
        "trunc",
        "tanh",
        "tan",
        "add.Scalar",
        "sub.Scalar",
        "sqrt",
        "sin",
        "sinh",
        "sign",
        "sigmoid",
        "round",
        "remainder.Scalar",
        "relu",
        "reciprocal",
        "neg",
        "ne.Scalar",
        "native_dropout",
        "mul.Scalar",
        "logical_not",
        "lt.Scalar",
        "le.Scalar",
        "log",
        "log10",
        "log2",
        "log1p",
        "leaky_relu",
        "isnan",
        "isinf",
        "hardtanh",
        "gt.Scalar",
        "gelu",
        "ge.Scalar",
        "fmod.Scalar",
        "floor",
        "fill.Scalar",
        "div.Scalar_mode",
        "div.Scalar",
        "bitwise_and.Scalar",
        "bitwise_or.Scalar",
        "bitwise_xor.Scalar",
        "atan2",
        "add.Tensor",
        "bitwise_and.Tensor",
        "bitwise_or.Tensor",
        "bitwise_xor.Tensor",
        "div.Tensor",
        "div.Tensor_mode",
        "eq.Tensor",
        "fmod.Tensor",
        "ge.Tensor",
        "gt.Tensor",
        "le.Tensor",
        "lt.Tensor",
        "ne.Tensor",
        "logical_and",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "mul.Tensor",
        "pow.Tensor_Tensor",
        "remainder.Tensor",
        "sub.Tensor",
        "amax",
        "amin",
        "any.dim",
        "_log_softmax",
        "_softmax",
        "cumsum",
        "mean.dim",
        "var.dim",
        "sum.dim_IntList",
        "prod.dim_int",
        "view",
        "unsqueeze",
        "squeeze.dim",
        "squeeze.dims",
        "permute",
        "slice.Tensor",
        "expand",
        "cat",
        "constant_pad_nd",
        "copy",
        "scaled_dot_product_attention",
    };
    QCOMPARE(reference.size(), std::size_t{103});
    const std::vector<std::string> more = {
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "transpose.int",
        "t",
        "select.int",
        "split.Tensor",
        "split_with_sizes",
        "chunk",
        "unbind.int",
        "stack",
        "where.self",
        "masked_fill.Scalar",
        "masked_fill.Tensor",
        "gather",
        "index_select",
        "index.Tensor",
        "embedding",
        "native_layer_norm",
        "layer_norm",
        "rms_norm",
        "native_group_norm",
        "group_norm",
        "topk",
        "sort",
        "argmax",
        "scatter.src",
        "scatter.value",
        "scatter_add",
        "tril",
        "triu",
        "arange",
        "arange.start",
        "arange.start_step",
        "full",
        "zeros",
        "ones",
        "repeat",
        "repeat_interleave.self_int",
        "flip",
        "roll",
        "one_hot",
        "nll_loss",
        "nll_loss_forward",
    };
    std::set<std::string> withExample;
    for (const rules::Example& example : rules::examples())
      withExample.insert(example.call.substr(0, example.call.find('(')));
    QStringList missing;
    for (const auto* list : {&reference, &more}) {
      for (const std::string& name : *list) {
        if (!rules::hasRule("aten::" + name) || !withExample.contains("aten::" + name))
          missing << QString::fromStdString(name);
      }
    }
    QCOMPARE(missing.join(' '), QString());
  }

  void namesTheCulprits() {
    const auto call = *rules::parseCall("aten::where.self(bool[4], f32[4] S(0), f32[4]) -> f32[4] @2");
    const auto graph = *rules::oneNodeGraph(call);
    const std::vector<rules::Placement> placements = {{}, rules::Placement::split(0), {}};
    const auto verdict = rules::applyRule({graph, graph::NodeId(3), placements, 2});
    QCOMPARE(std::get<rules::Conflict>(verdict).culprits, (std::vector<int>{0, 1}));
  }

  void aPaddedDimensionPassesWhereItIsLeftAlone() {
    QCOMPARE(judge("aten::tanh(f32[2,257] S(1,pad 1)) -> f32[2,257] @2"), "S(1,pad 1)");
    QCOMPARE(judge("aten::slice.Tensor(f32[1,6,257] S(2,pad 1), 1, 0, 5) -> f32[1,5,257] @2"), "S(2,pad 1)");
    QCOMPARE(judge("aten::view(f32[1,6,257] S(2,pad 1), [6,257]) -> f32[6,257] @2"), "S(1,pad 1)");
    QCOMPARE(judge("aten::sum.dim_IntList(f32[6,257] S(1,pad 1), [0]) -> f32[257] @2"), "S(0,pad 1)");
    QVERIFY(judge("aten::sum.dim_IntList(f32[6,257] S(1,pad 1), [1]) -> f32[6] @2")
                .startsWith("conflict: `sum` sums over dimension 1"));
    QVERIFY(judge("aten::_softmax(f32[6,257] S(1,pad 1), -1, false) -> f32[6,257] @2")
                .startsWith("conflict: `_softmax` normalises along"));
    QVERIFY(judge("aten::view(f32[6,258] S(1,pad 2), [6,2,129]) -> f32[6,2,129] @4")
                .startsWith("conflict: `view` regroups a padded dimension"));
    QVERIFY(judge("aten::add.Tensor(f32[6,257] S(1,pad 1), f32[257]) -> f32[6,257] @2")
                .startsWith("conflict: `add` needs its inputs split"));
  }

  void aNormBetweenALayerAndItsHeadsNamesTheLayer() {
    const auto graph = *graph::parseGraph(
        "x: f32[1,6,8] = input\n"
        "q.weight: f32[64,8] = parameter @q\n"
        "y: f32[1,6,64] = aten::linear(x, q.weight, None) @q\n"
        "squares: f32[1,6,64] = aten::pow.Tensor_Scalar(y, 2)\n"
        "mean: f32[1,6,1] = aten::mean.dim(squares, [-1], true)\n"
        "return mean=mean\n");
    const std::vector<rules::Placement> split = {rules::Placement::split(2)};
    const auto verdict = rules::applyRule({graph, graph::NodeId(4), split, 2});
    QCOMPARE(
        QString::fromStdString(std::get<rules::Conflict>(verdict).reason),
        QString("`mean` normalises over all 64 features of `q`, which are split (S(2)): no rank holds all of them."));
  }

  void replicatedHeadsShareTheirCopiesOut() {
    // repeat_kv with 2 KV heads on 4 ranks, as DESIGN's table of placements tells it.
    QCOMPARE(judge("aten::view(f32[1,6,16] S(2,x2), [1,6,2,8]) -> f32[1,6,2,8] @4"), "S(2,x2)");
    QCOMPARE(judge("aten::permute(f32[1,6,2,8] S(2,x2), [0,2,1,3]) -> f32[1,2,6,8] @4"), "S(1,x2)");
    QCOMPARE(judge("aten::unsqueeze(f32[1,2,6,8] S(1,x2), 2) -> f32[1,2,1,6,8] @4"), "S(1,x2)");
    QCOMPARE(judge("aten::expand(f32[1,2,1,6,8] S(1,x2), [1,2,4,6,8]) -> f32[1,2,4,6,8] @4"), "S(1:2) | S(1,x2)");
    QCOMPARE(judge("aten::clone(f32[1,2,4,6,8] S(1:2)) -> f32[1,2,4,6,8] @4"), "S(1:2)");
    QCOMPARE(judge("aten::view(f32[1,2,4,6,8] S(1:2), [1,8,6,8]) -> f32[1,8,6,8] @4"), "S(1)");
  }

  void aJointSplitThatEveryRankHoldsWholeIsWholeWhereAPartOfItIsBroadcast() {
    QCOMPARE(judge("aten::mul.Tensor(f32[4,1,12] S(1:2,x2), f32[3,1]) -> f32[4,3,12] @2"), "R");
  }

  void fusedBlocksPassAtTheirBorders() {
    QCOMPARE(judge("aten::split.Tensor(f32[2,12] S(1,b3), 4, -1) -> f32[2,4], f32[2,4], f32[2,4] @4"),
             "(S(1), S(1), S(1))");
    QCOMPARE(judge("aten::slice.Tensor(f32[2,12] S(1,b[8,2/x2,2/x2]), 1, 8, 10) -> f32[2,2] @4"), "S(1,x2)");
    QCOMPARE(judge("aten::slice.Tensor(f32[2,12] S(1,b[8,2/x2,2/x2]), 1, 0, 8) -> f32[2,8] @4"), "S(1)");
    QCOMPARE(judge("aten::view(f32[2,12] S(1,b3), [2,3,4]) -> f32[2,3,4] @4"), "S(2)");
    QCOMPARE(judge("aten::cat([f32[2,4] S(1), f32[2,8] S(1)], 1) -> f32[2,12] @2"), "S(1,b[4,8])");
    QVERIFY(judge("aten::slice.Tensor(f32[2,12] S(1,b3), 1, 0, 6) -> f32[2,6] @4").startsWith("conflict"));
  }

  void knowsTheWholeRegistryOfTheReference() {
    const std::vector<const char*> registry = {"pow.Tensor_Scalar",
                                               "rsqrt",
                                               "clone",
                                               "bitwise_not",
                                               "abs",
                                               "_to_copy",
                                               "acos",
                                               "acosh",
                                               "alias",
                                               "asin",
                                               "asinh",
                                               "atan",
                                               "atanh",
                                               "ceil",
                                               "clamp",
                                               "cos",
                                               "cosh",
                                               "erf",
                                               "exp",
                                               "trunc",
                                               "tanh",
                                               "tan",
                                               "add.Scalar",
                                               "sub.Scalar",
                                               "sqrt",
                                               "sin",
                                               "sinh",
                                               "sign",
                                               "sigmoid",
                                               "round",
                                               "remainder.Scalar",
                                               "relu",
                                               "reciprocal",
                                               "neg",
                                               "ne.Scalar",
                                               "native_dropout",
                                               "mul.Scalar",
                                               "logical_not",
                                               "lt.Scalar",
                                               "le.Scalar",
                                               "log",
                                               "log10",
                                               "log2",
                                               "log1p",
                                               "leaky_relu",
                                               "isnan",
                                               "isinf",
                                               "hardtanh",
                                               "gt.Scalar",
                                               "gelu",
                                               "ge.Scalar",
                                               "fmod.Scalar",
                                               "floor",
                                               "fill.Scalar",
                                               "div.Scalar_mode",
                                               "div.Scalar",
                                               "bitwise_and.Scalar",
                                               "bitwise_or.Scalar",
                                               "bitwise_xor.Scalar",
                                               "atan2",
                                               "add.Tensor",
                                               "bitwise_and.Tensor",
                                               "bitwise_or.Tensor",
                                               "bitwise_xor.Tensor",
                                               "div.Tensor",
                                               "div.Tensor_mode",
                                               "eq.Tensor",
                                               "fmod.Tensor",
                                               "ge.Tensor",
                                               "gt.Tensor",
                                               "le.Tensor",
                                               "lt.Tensor",
                                               "ne.Tensor",
                                               "logical_and",
                                               "logical_or",
                                               "logical_xor",
                                               "maximum",
                                               "minimum",
                                               "mul.Tensor",
                                               "pow.Tensor_Tensor",
                                               "remainder.Tensor",
                                               "sub.Tensor",
                                               "amax",
                                               "amin",
                                               "any.dim",
                                               "_log_softmax",
                                               "_softmax",
                                               "cumsum",
                                               "mean.dim",
                                               "var.dim",
                                               "sum.dim_IntList",
                                               "prod.dim_int",
                                               "view",
                                               "unsqueeze",
                                               "squeeze.dim",
                                               "squeeze.dims",
                                               "permute",
                                               "slice.Tensor",
                                               "expand",
                                               "cat",
                                               "constant_pad_nd",
                                               "copy",
                                               "scaled_dot_product_attention"};
    QCOMPARE(registry.size(), std::size_t{103});
    for (const char* op : registry) QVERIFY2(rules::hasRule(std::string("aten::") + op), op);
  }

  void listsEveryOperatorInOneFamily() {
    std::set<std::string_view> seen;
    for (const rules::Family& family : rules::families()) {
      QVERIFY(!family.ops.empty());
      for (const std::string_view op : family.ops) QVERIFY2(seen.insert(op).second, std::string(op).c_str());
    }
    QVERIFY(seen.size() > 250);
  }

  /// Arguments of foreign graphs may be anything: a conflict, never a crash.
  void answersNonsenseWithAConflict_data() {
    QTest::addColumn<QString>("call");
    for (const char* call : {"aten::sum.dim_IntList(f32[4,4] S(0), [7]) -> f32[4] @2",
                             "aten::permute(f32[4,4] S(0), [0,9]) -> f32[4,4] @2",
                             "aten::permute(f32[4,4] S(0), \"x\") -> f32[4,4] @2",
                             "aten::view(f32[4,4] S(0), [3]) -> f32[3] @2",
                             "aten::transpose.int(f32[4] S(0), 0, 5) -> f32[4] @2",
                             "aten::cat(f32[4] S(0)) -> f32[4] @2",
                             "aten::mm(f32[4,4] S(0)) -> f32[4,4] @2",
                             "aten::mm(f32[4,4] S(0), f32[]) -> f32[4,4] @2",
                             "aten::gather(f32[4,4] S(0), 0, i64[4]) -> f32[4] @2",
                             "aten::index.Tensor(f32[4] S(0), [i64[2], i64[2]]) -> f32[2] @2",
                             "aten::expand(f32[4,4] S(0), [4]) -> f32[4] @2",
                             "aten::movedim.int(f32[4,4] S(0), 0, 9) -> f32[4,4] @2",
                             "aten::native_layer_norm(f32[4,4] S(0), [4,4,4], None, None, 1e-5) -> f32[4,4] @2",
                             "aten::slice.Tensor(f32[4] S(0), 0, 0, 4, 0) -> f32[4] @2",
                             "aten::add.Tensor(f32[4,4] S(0), f32[4]) -> f32[4] @2",
                             "aten::native_group_norm(f32[4,4] S(1), None, None, 4, 4, 1, 0, 1e-5) -> f32[4,4] @2",
                             "aten::einsum(\"ab,bc->zz\", [f32[2,4] S(0), f32[4,2]]) -> f32[2,2] @2",
                             "aten::split.Tensor(f32[4] S(0)) -> f32[2] @2",
                             "aten::embedding(f32[4], i64[2] S(0)) -> f32[2] @2",
                             "aten::stack([f32[4] S(0), f32[4,4]], 0) -> f32[2,4] @2",
                             "aten::scaled_dot_product_attention(f32[4,4] S(0)) -> f32[4,4] @2",
                             "aten::roll(f32[4] S(0), [1], [9]) -> f32[4] @2",
                             "aten::nll_loss_forward(f32[4] S(0)) -> f32[] @2"}) {
      QTest::newRow(call) << call;
    }
  }
  void answersNonsenseWithAConflict() {
    QFETCH(QString, call);
    const QString verdict = judge(call);
    QVERIFY2(verdict.startsWith("conflict: ") || call.contains("roll"), qPrintable(verdict));
  }

  void readsCallsBackFromText() {
    for (const char* text : {"aten::cat([f32[2,4] S(0), f32[2,6] S(0)], -1) -> f32[2,10] @2",
                             "aten::index.Tensor(f32[4,4], [None, i64[2] <4>]) -> f32[4,2]",
                             "aten::f(None, 1.5, true, \"a b\", [1, 2], [0.5], :bf16, device, -3)"}) {
      const auto call = rules::parseCall(text);
      QVERIFY2(call.has_value(), text);
      QCOMPARE(QString::fromStdString(rules::toText(*call)), text);
    }
    const auto sized =
        rules::parseCall("aten::view(f32[a,b*c], [a,b,c]) -> f32[a,b,c]", {{'a', 2}, {'b', 3}, {'c', 4}});
    QCOMPARE(QString::fromStdString(rules::toText(*sized)), "aten::view(f32[2,12], [2, 3, 4]) -> f32[2,3,4]");
    QCOMPARE(QString::fromStdString(rules::sizeLetters("aten::view(f32[a,b*c], [a,b,c], \"x\", None)")), "abc");
    for (const char* bad : {"", "aten::f", "aten::f(", "aten::f(f32[2,4)", "aten::f(f32[2] S(q))", "aten::f(z)",
                            "aten::f() x", "aten::f([[1]])", "aten::f(\"a)", "aten::f(f32[99999999999*99999999999])"}) {
      QVERIFY2(!rules::parseCall(bad).has_value(), bad);
    }
  }
};

QTEST_APPLESS_MAIN(TstRules)
#include "tst_rules.moc"
