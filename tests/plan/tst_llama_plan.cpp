#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"

#include <ctime>
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;
using rules::CollectiveKind;
using rules::SequenceParallel;

namespace {

/// Solves, then plans, as Cleave does.
PlanRequest solved(const test::LlamaSizes& sizes, rules::StrategyContext context) {
  PlanRequest request;
  request.problem = std::make_shared<const solve::Problem>(solve::Problem{test::llamaGraph(sizes), context, {}});
  const auto sink = solve::makeCountingSink();
  auto result = solve::solve(*request.problem, solve::Engine::Reference, *sink);
  if (!result) qFatal("%s", result.error().message.c_str());
  if (!result->solution) qFatal("no solution");
  request.solution = std::make_shared<const solve::Solution>(std::move(*result->solution));
  request.search = result->stats;
  request.model = {"models/llama", "LlamaForCausalLM", "llama"};
  request.model.setShape(sizes.batch, sizes.sequence);
  return request;
}

double milliseconds(std::clock_t from, std::clock_t to) {
  return 1e3 * static_cast<double>(to - from) / CLOCKS_PER_SEC;
}

}  // namespace

class TestLlamaPlan : public QObject {
  Q_OBJECT
 private slots:
  void layersAreSplitAsInTheReference_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("onSequence");
    QTest::addColumn<bool>("isTied");
    for (int ranks : {2, 4}) {
      for (bool onSequence : {false, true}) {
        for (bool isTied : {false, true}) {
          QTest::newRow(qPrintable(QString("%1 ranks%2%3")
                                       .arg(ranks)
                                       .arg(onSequence ? ", on the sequence" : "")
                                       .arg(isTied ? ", tied" : "")))
              << ranks << onSequence << isTied;
        }
      }
    }
  }
  void layersAreSplitAsInTheReference() {
    QFETCH(int, ranks);
    QFETCH(bool, onSequence);
    QFETCH(bool, isTied);
    test::LlamaSizes sizes;
    sizes.isTied = isTied;
    const auto request = solved(sizes, context(ranks, onSequence ? SequenceParallel::On : SequenceParallel::Off));
    const Plan plan = planned(request);
    for (const LayerPlan& layer : plan.layers) {
      const bool isRow = layer.name.ends_with("o_proj") || layer.name.ends_with("down_proj");
      const bool isVocab = layer.kind != graph::LayerKind::Linear;
      QCOMPARE(layer.axis, std::string(isVocab ? "vocab" : isRow ? "row" : "column"));
      QCOMPARE(layer.inputIsParallel, isRow);
      QCOMPARE(layer.sequenceParallel, onSequence && layer.kind != graph::LayerKind::CrossEntropy);
      QVERIFY(!layer.gatherOutput);
    }
    QCOMPARE(plan.layers.size(), std::size_t(1 + 7 * 2 + 2));
    auto traffic = trafficByKind(plan.collectives);
    // Each layer has 2 gathers (before q,k,v and before gate,up) and 2 reductions. Head and embedding have 1 each, the
    // loss 3, the logits 1.
    QCOMPARE(traffic[CollectiveKind::AllReduce].count, onSequence ? 3 : 3 + 1 + 2 * 2);
    QCOMPARE(traffic[CollectiveKind::ReduceScatter].count, onSequence ? 1 + 2 * 2 : 0);
    QCOMPARE(traffic[CollectiveKind::AllGather].count, onSequence ? 2 * 2 + 1 + 1 : 1);
    QVERIFY2(plan.warnings.empty(), plan.warnings.empty() ? "" : plan.warnings[0].c_str());
    for (ValueId id : idRange<ValueId>(plan.graph->values.size())) {
      const ValueId held = plan.programValueOf[id.index()];
      QVERIFY(held.isValid());
      QCOMPARE(plan.program->value(held).name, plan.graph->value(id).name);
      QCOMPARE(plan.program->shapeOf(held), *plan.solution->of(id).localShape(plan.graph->shapeOf(id), ranks));
    }
    for (const ParameterShards& parameter : plan.parameters) {
      const std::int64_t parts = parameter.placement.isReplicated() ? 1 : ranks;
      QCOMPARE(graph::elementCount(parameter.localShape) * parts, graph::elementCount(parameter.type.shape));
    }
  }

  void explainsReplicatedLayers() {
    test::LlamaSizes sizes;
    sizes.kvHeads = 1;
    const Plan plan = planned(solved(sizes, context(2)));
    const auto reasonOf = [&](const std::string& name) {
      for (const LayerPlan& layer : plan.layers) {
        if (layer.name == name) return layer.axis + ": " + layer.reason;
      }
      return std::string();
    };
    const std::string reason = reasonOf("model.layers.0.self_attn.k_proj");
    QVERIFY2(reason.starts_with("replicated: 1 KV head does not divide by 2 ranks; "), reason.c_str());
    QVERIFY(reasonOf("model.layers.1.self_attn.q_proj").find("1 KV head does not divide by 2 ranks") !=
            std::string::npos);
    QCOMPARE(reasonOf("model.layers.0.mlp.up_proj"),
             std::string("column: 112 output features split over 2 ranks, 56 each"));
    QCOMPARE(plan.warnings.size(), std::size_t{5});
    QVERIFY2(plan.warnings[0].starts_with(
                 "1 KV head does not divide by 2 ranks, so every rank computes all of `model.layers.*.self_attn`: "),
             plan.warnings[0].c_str());
    QVERIFY2(plan.warnings[0].ends_with("with the full candidate set it can be split."), plan.warnings[0].c_str());
    QVERIFY2(plan.warnings[1].starts_with("2 layers model.layers.*.self_attn.q_proj (32 KiB per rank): the first is "),
             plan.warnings[1].c_str());
  }

  void plansAndWritesAHugeModelFast() {
    const test::LlamaSizes sizes{126, 16384, 128, 8, 53248, 128256, 1, 128};
    const auto request = solved(sizes, context(8));
    // Processor time does not depend on other processes.
    const std::clock_t start = std::clock();
    const Plan plan = planned(request);
    const std::clock_t afterPlan = std::clock();
    const std::string text = toJson(plan);
    const std::clock_t afterWriting = std::clock();
    const auto again = planFromJson(text);
    const std::clock_t afterReading = std::clock();
    qInfo("%zu nodes: plan %.1f ms, write %.1f ms (%zu bytes), read %.1f ms", plan.graph->nodes.size(),
          milliseconds(start, afterPlan), milliseconds(afterPlan, afterWriting), text.size(),
          milliseconds(afterWriting, afterReading));
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toJson(*again) == text, true);
  }
};

QTEST_APPLESS_MAIN(TestLlamaPlan)
#include "tst_llama_plan.moc"
