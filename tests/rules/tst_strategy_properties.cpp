/// Properties of the strategies of all layers. CLEAVE_SEED repeats a random run.
#include "graph/graph_builder.h"
#include "tests/rules/strategy_graphs.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

QStringList namesOf(const LayerStrategies& options) {
  QStringList names;
  for (const auto& option : options.offered) names << QString::fromUtf8(toText(option.strategy).data());
  return names;
}

std::string randomGraph(std::mt19937_64& random) {
  const auto upTo = [&](int n) { return 1 + static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string lead = std::to_string(upTo(4));
  for (int more = static_cast<int>(random() % 3); more > 0; --more) lead += fmt::format(",{}", upTo(12));
  switch (random() % 6) {
    case 0: return linear(lead, upTo(24), upTo(24), random() % 2 == 0);
    case 1: return conv1d("aten::addmm", std::to_string(upTo(12)), upTo(24), upTo(24));
    case 2: return conv1d("aten::matmul", lead, upTo(24), upTo(24));
    case 3: return embedding(lead, upTo(40), upTo(12));
    case 4: return crossEntropy(upTo(24));
    default: break;
  }
  const int headSize = upTo(3);
  const char* split = random() % 2 == 0 ? "sizes" : "slice";
  std::vector<int> heads(static_cast<std::size_t>(1 + random() % 3));
  for (int& size : heads) size = headSize * upTo(8);
  return fused(heads, headSize, heads.size() == 1 ? "slice" : split);
}

}  // namespace

class TestStrategyProperties : public QObject {
  Q_OBJECT
 private slots:
  void everyOfferedFormHasLocalShapes();
  void theFullCandidateSetIncludesOptimums();
  void manyPathsAfterALayerAreVisitedOnce();
  void namesReadBackAsWritten();
};

void TestStrategyProperties::everyOfferedFormHasLocalShapes() {
  std::mt19937_64 random(test::seed());
  for (std::uint64_t left = test::rounds(3000); left > 0; --left) {
    const std::string text = randomGraph(random);
    const StrategyContext context{1 + static_cast<int>(random() % 8), random() % 2 == 0 ? kOptimum : kFull,
                                  static_cast<SequenceParallel>(random() % 3)};
    const auto asked = ask(text);
    QVERIFY(asked);
    const auto options = layerStrategiesOf(*asked, context);
    QVERIFY2(!options.offered.empty(), text.c_str());
    const graph::ValueId result = asked->graph.node(asked->node).results.front();
    for (const LayerStrategy& option : options.offered) {
      QVERIFY(!option.reason.empty());
      const auto fits = [&](const rules::Placement& placement, graph::ValueId value) {
        if (!value.isValid()) return placement.isReplicated();
        return placement.localShape(asked->graph.shapeOf(value), context.worldSize).has_value();
      };
      const bool allFit = fits(option.input, asked->layer.input) && fits(option.weight, asked->layer.weight) &&
                          fits(option.bias, asked->layer.bias) && fits(option.result, result);
      const std::string where =
          fmt::format("{} on {} ranks in\n{}", textOf(option, asked->layer), context.worldSize, text);
      QVERIFY2(allFit, where.c_str());
    }
    for (const auto& refusal : options.refused) QVERIFY2(!refusal.reason.empty(), text.c_str());
  }
}

void TestStrategyProperties::theFullCandidateSetIncludesOptimums() {
  std::mt19937_64 random(test::seed());
  for (std::uint64_t left = test::rounds(1000); left > 0; --left) {
    const std::string text = randomGraph(random);
    const auto asked = ask(text);
    QVERIFY(asked);
    StrategyContext context{1 + static_cast<int>(random() % 8), kOptimum, static_cast<SequenceParallel>(random() % 3)};
    const auto few = layerStrategiesOf(*asked, context);
    context.candidateSet = kFull;
    const QStringList all = namesOf(layerStrategiesOf(*asked, context));
    qsizetype from = 0;  // the same order, with more strategies in between
    for (const QString& name : namesOf(few)) {
      from = all.indexOf(name, from);
      QVERIFY2(from >= 0, text.c_str());
      ++from;
    }
  }
}

/// Between the projection and the loss are 60^6 paths, each with the same few hundred values.
void TestStrategyProperties::manyPathsAfterALayerAreVisitedOnce() {
  constexpr int kWide = 60, kDeep = 6;
  graph::GraphBuilder builder("maze");
  const auto type = [](graph::Shape shape) { return graph::TensorType{graph::DType::Float32, std::move(shape)}; };
  const graph::ValueId x = builder.addInput("x", type({2, 4}));
  const graph::ValueId weight = builder.addParameter("head.weight", type({5, 4}));
  const graph::ValueId logits =
      builder.addCall("aten::linear", {x, weight, graph::Argument{}}, {type({2, 5})}, builder.scope("head"))[0];
  graph::ValueList level(kWide, logits);
  for (int i = 0; i < kDeep; ++i) {
    graph::ValueList next;
    for (int j = 0; j < kWide; ++j) {
      const graph::ValueId stacked = builder.addCall("aten::stack", {level, std::int64_t{0}}, {type({kWide, 2, 5})})[0];
      next.push_back(
          builder.addCall("aten::select.int", {stacked, std::int64_t{0}, std::int64_t{j}}, {type({2, 5})})[0]);
    }
    level = next;
  }
  const graph::ValueId end =
      builder.addCall("aten::sum.dim_IntList", {level[0], std::vector<std::int64_t>{-1}, false}, {type({2})})[0];
  builder.addOutput("y", end);
  const auto graph = std::move(builder).finish();
  QVERIFY(graph.has_value());
  const graph::NodeId node = graph->value(logits).producer;
  for (const LayerStrategy& option :
       layerStrategies(*graph, node, *graph::layerShape(*graph, node), on(2, kFull)).offered) {
    QVERIFY(option.weight.padding() == 0);  // the 5 columns are not used as classes, because there is no loss and no
                                            // output
  }
}

void TestStrategyProperties::namesReadBackAsWritten() {
  for (int i = 0; i <= static_cast<int>(Strategy::InExpert); ++i) {
    const auto strategy = static_cast<Strategy>(i);
    QVERIFY(rules::parseStrategy(toText(strategy)) == strategy);
  }
  for (const char* text : {"", "Column", "columns", "row ", "column+"}) QVERIFY(!rules::parseStrategy(text));
}

QTEST_APPLESS_MAIN(TestStrategyProperties)
#include "tst_strategy_properties.moc"
