#include "graph/operators.h"
#include "rules/rule.h"
#include "tests/rules/strategy_graphs.h"

#include <fmt/format.h>
#include <QTest>

#include <set>

using namespace cleave;

class TstRules : public QObject {
  Q_OBJECT

 private slots:
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
    QCOMPARE(QString::fromStdString(std::get<rules::Conflict>(verdict).reason),
             QString("`mean` normalises over all 64 features of `q`, but each rank has only a part of them (S(2))."));
  }

  /// Refusals of a size of one use the singular.
  void countsOfOneAreSingular() {
    const auto refusals = [](const std::string& text) {
      QStringList reasons;
      const auto asked = test::ask(text);
      for (const auto& refusal : test::layerStrategiesOf(*asked, test::on(2)).refused)
        reasons << QString::fromStdString(refusal.reason);
      return reasons;
    };
    QCOMPARE(refusals(test::linear("2,6", 1, 1, false)), QStringList({"1 output feature does not divide by 2 ranks",
                                                                      "1 input feature does not divide by 2 ranks"}));
    QCOMPARE(refusals(test::linear("2,6", 3, 5, false)),
             QStringList({"5 output features do not divide by 2 ranks", "3 input features do not divide by 2 ranks"}));
    QCOMPARE(refusals(test::embedding("6", 1, 4)), QStringList("1 vocabulary row does not divide by 2 ranks"));
    QCOMPARE(refusals(test::crossEntropy(1)), QStringList("1 class does not divide by 2 ranks"));
    QCOMPARE(refusals(test::crossEntropy(3)), QStringList("3 classes do not divide by 2 ranks"));
  }

  void listsEveryOperatorInOneFamily() {
    std::set<std::string_view> seen;
    for (const rules::Family& family : rules::families()) {
      QVERIFY(!family.ops.empty());
      for (const std::string_view op : family.ops) QVERIFY2(seen.insert(op).second, std::string(op).c_str());
    }
    QVERIFY(seen.size() > 250);
  }

  /// Every operator has a row in graph/operators.h and, except for these, a row in a family.
  void eachRuleIsOfAnOperatorWithARow() {
    const std::set<std::string_view> withoutRule = {"aten::_scaled_dot_product_attention_math",
                                                    "aten::_scaled_dot_product_cudnn_attention",
                                                    "aten::_scaled_dot_product_efficient_attention",
                                                    "aten::_scaled_dot_product_flash_attention",
                                                    "aten::_scaled_dot_product_flash_attention_for_cpu",
                                                    "aten::_scaled_dot_product_fused_attention_overrideable",
                                                    "aten::as_strided",
                                                    "aten::conv1d",
                                                    "aten::conv2d",
                                                    "aten::conv3d",
                                                    "aten::convolution",
                                                    "aten::diagonal",
                                                    "aten::repeat_interleave",
                                                    "aten::unfold"};
    std::set<std::string_view> ruled;
    for (const rules::Family& family : rules::families()) {
      for (const std::string_view op : family.ops) {
        const graph::Operator* row = graph::findOperator(op);
        QVERIFY2(row, fmt::format("{} has a rule but no row in core/graph/operator_table.cpp", op).c_str());
        ruled.insert(row->name);
      }
    }
    for (const graph::Operator& row : graph::operators()) {
      const bool needsNone = row.own || withoutRule.contains(row.name);
      const char* what = needsNone ? "has a rule but should not need one" : "has a row but no rule in core/rules";
      QVERIFY2(needsNone != ruled.contains(row.name), fmt::format("{} {}", row.name, what).c_str());
    }
  }
};

QTEST_APPLESS_MAIN(TstRules)
#include "tst_rules.moc"
