#include "rules/rule.h"

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
    QCOMPARE(
        QString::fromStdString(std::get<rules::Conflict>(verdict).reason),
        QString("`mean` normalises over all 64 features of `q`, which are split (S(2)): no rank holds all of them."));
  }

  void listsEveryOperatorInOneFamily() {
    std::set<std::string_view> seen;
    for (const rules::Family& family : rules::families()) {
      QVERIFY(!family.ops.empty());
      for (const std::string_view op : family.ops) QVERIFY2(seen.insert(op).second, std::string(op).c_str());
    }
    QVERIFY(seen.size() > 250);
  }
};

QTEST_APPLESS_MAIN(TstRules)
#include "tst_rules.moc"
