/// The table of operators: lookup of rows, and consistency of each row.
#include "graph/layers.h"
#include "graph/op_names.h"
#include "graph/operators.h"

#include <QTest>

#include <set>

using namespace cleave;
using namespace cleave::graph;

namespace {

/// One call of `op` on these arguments, where x is f32[4,8] and ids are i64[4].
Node callOf(std::string_view op, const std::string& arguments) {
  const auto graph =
      parseGraph(fmt::format("x: f32[4,8] = input\nids: i64[4] = input\ny: f32[4,8] = {}({})\n", op, arguments));
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return graph->nodes.back();
}

}  // namespace

class TestOperators : public QObject {
  Q_OBJECT
 private slots:
  void overloadsShareARow() {
    QCOMPARE(findOperator("aten::add.Scalar"), findOperator("aten::add"));
    QCOMPARE(operatorOf("aten::add.Tensor").name, std::string_view("aten::add"));
    QVERIFY(operatorOf("aten::repeat_interleave.self_int").holds == Holds::Repetition);
    QVERIFY(operatorOf("aten::repeat_interleave.Tensor").holds == Holds::New);
  }

  void operatorsWithoutARowSaveEverything() {
    for (const char* op : {"other::add", "add", "aten::", "aten::no_such_thing.Tensor", ""}) {
      QVERIFY2(!findOperator(op), op);
      QVERIFY2(operatorOf(op).cost == CostClass::Elementwise && operatorOf(op).saves == Saves::Everything, op);
    }
  }

  /// An overload may have arguments that the row does not name.
  void layersAndOwnOperatorsHaveNoOverloads() {
    QVERIFY(mayBeLayer("aten::mm") && !mayBeLayer("aten::mm.dtype") && !mayBeLayer("aten::baddbmm"));
    QVERIFY(parallelOp(kAllReduce) == ParallelOp::AllReduce);
    for (const char* op : {"cleave::all_reduce.x", "cleave::none", "all_reduce", "aten::mm", ""})
      QVERIFY2(!parallelOp(op), op);
  }

  /// Dropout with probability 0 draws no numbers.
  void drawsNumbersAsItsArgumentsSay() {
    const auto graph = graph::parseGraph(R"(graph g
x: f32[2,2,4,4] = input
a: f32[2,2,4,4] = aten::rand_like(x)
b: f32[2,2,4,4] = aten::dropout(x, 0.5, true)
c: f32[2,2,4,4] = aten::dropout(x, 0.5, false)
d: f32[2,2,4,4], e: bool[2,2,4,4] = aten::native_dropout(x, 0.0, true)
f: f32[2,2,4,4], g: bool[2,2,4,4] = aten::native_dropout(x, 0.1, None)
h: f32[2,2,4,4] = aten::scaled_dot_product_attention(x, x, x, None, 0.1)
i: f32[2,2,4,4] = aten::scaled_dot_product_attention(x, x, x)
j: f32[2,2,4,4] = aten::relu(x)
return y=j
)");
    QVERIFY(graph);
    std::string drawing;
    for (const graph::Node& node : graph->nodes) {
      if (drawsNumbers(*graph, node)) drawing += graph->value(node.results.front()).name;
    }
    QCOMPARE(drawing, std::string("abfh"));
  }

  void eachRowSaysWhatCanBe() {
    std::set<std::string_view> names;
    std::set<ParallelOp> own;
    for (const Operator& row : operators()) {
      const std::string name(row.name);
      QVERIFY2(names.insert(row.name).second, name.c_str());
      QVERIFY2(findOperator(row.name) == &row, name.c_str());
      QVERIFY2((row.cost == CostClass::Nothing) == (row.holds == Holds::View), name.c_str());
      QVERIFY2(row.cost != CostClass::Nothing || row.saves == Saves::Nothing, name.c_str());
      QVERIFY2(row.summed == 0 || row.cost == CostClass::Product, name.c_str());
      QVERIFY2(row.name.starts_with(row.own ? "cleave::" : "aten::"), name.c_str());
      QVERIFY2(row.own.has_value() == !row.arguments.empty(), name.c_str());
      if (row.own) QVERIFY2(own.insert(*row.own).second, name.c_str());
      if (!row.layer) continue;
      QVERIFY2(mayBeLayer(row.name), name.c_str());
      QVERIFY2(row.layer->withoutBias.empty() || findOperator(row.layer->withoutBias), name.c_str());
    }
  }

  void ownOperatorsNameTheArgumentThatIsWrong_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("sentence");  // empty: valid
    const auto row = [](std::string_view op, const char* arguments, const char* sentence) {
      QTest::newRow(qPrintable(QString(sentence))) << QString::fromStdString(std::string(op)) << arguments << sentence;
    };
    row(kAllGather, "x, 1", "");
    row(kAllGather, "x", "cleave::all_gather needs 2 arguments, but the node has 1.");
    row(kShard, "x, None", "cleave::shard: argument dim must be an integer.");
    row(kAllReduce, "3", "cleave::all_reduce: argument x must be a tensor.");
    row(kVocabCrossEntropy, "x, ids, x, 1, -100, 0.0, 8",
        "cleave::vocab_cross_entropy: argument class_weights must be absent.");
    row(kVocabCrossEntropy, "x, ids, None, 1, -100, \"a\", 8",
        "cleave::vocab_cross_entropy: argument label_smoothing must be a number.");
    row(kMoeExperts, "x, ids, x, x, x, 1, None, 1.0, 0.0",
        "cleave::moe_experts: argument activation must be a string.");
    row(kMoeExperts, "x, ids, x, x, x, \"silu\", 4, 1.0, 0.0",
        "cleave::moe_experts: argument gate_up_bias must be a tensor or None.");
    row(kMoeExperts, "x, ids, x, x, x, \"silu\", 4", "cleave::moe_experts needs 9 arguments, but the node has 7.");
  }
  void ownOperatorsNameTheArgumentThatIsWrong() {
    QFETCH(QString, op);
    QFETCH(QString, arguments);
    QFETCH(QString, sentence);
    const std::string name = op.toStdString();
    const auto checked = checkArguments(*parallelOp(name), callOf(name, arguments.toStdString()));
    QCOMPARE(checked.has_value(), sentence.isEmpty());
    if (!checked) QCOMPARE(QString::fromStdString(checked.error().message), sentence);
  }

  void namesAreCutAtTheirMarks() {
    QCOMPARE(withoutNamespace("aten::sum.dim_IntList"), std::string_view("sum.dim_IntList"));
    QCOMPARE(shortName("aten::sum.dim_IntList"), std::string_view("sum"));
    QCOMPARE(shortName("relu"), std::string_view("relu"));
  }
};

QTEST_APPLESS_MAIN(TestOperators)
#include "tst_operators.moc"
