#include "graph/graph_builder.h"
#include "graph/operators.h"
#include "plan/build/plan_request.h"
#include "plan/build/steps.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/seeds.h"

#include <random>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

namespace {

/// Live bytes by brute force: after each node, sums the storages that a later node or an output needs.
std::vector<std::int64_t> liveByBruteForce(const Graph& program) {
  const auto storageOf = [&](ValueId value) {
    for (;;) {
      const graph::Node& node = program.node(program.value(value).producer);
      if (!graph::isView(program.opName(node))) return value;
      value = std::get<ValueId>(node.args[0]);
    }
  };
  std::vector<std::int64_t> live;
  for (NodeId now : idRange<NodeId>(program.nodes.size())) {
    std::map<std::uint32_t, std::int64_t> needed;
    for (ValueId value : idRange<ValueId>(program.values.size())) {
      const graph::Value& info = program.value(value);
      if (info.producer > now) continue;
      const bool isOutput =
          std::any_of(program.outputs.begin(), program.outputs.end(), [&](const auto& o) { return o.value == value; });
      const bool isRead = std::any_of(info.users.begin(), info.users.end(), [&](NodeId user) { return user > now; });
      const ValueId storage = storageOf(value);
      const auto kind = program.node(program.value(storage).producer).kind;
      if ((isOutput || isRead) && kind == graph::NodeKind::Call)
        needed[storage.raw()] = graph::sizeInBytes(program.value(storage).type);
    }
    std::int64_t sum = 0;
    for (const auto& [storage, bytes] : needed) sum += bytes;
    live.push_back(sum);
  }
  return live;
}

/// Random chains, joins and views over tensors of random sizes.
std::shared_ptr<const Graph> randomProgram(std::mt19937_64& random) {
  graph::GraphBuilder builder;
  const auto pick = [&](std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random); };
  std::vector<ValueId> values{builder.addInput("x", {graph::DType::Float32, {8}})};
  for (int i = 0; i < 30; ++i) {
    const ValueId a = values[pick(values.size())], b = values[pick(values.size())];
    const auto size = static_cast<std::int64_t>(1 + pick(16));
    const graph::TensorType same = builder.current().value(a).type;
    switch (pick(4)) {
      case 0:
        values.push_back(builder.addCall("aten::add.Tensor", {a, b}, {{graph::DType::Float32, {size}}})[0]);
        break;
      case 1: values.push_back(builder.addCall("aten::view", {a}, {same})[0]); break;
      case 2: values.push_back(builder.addCall("cleave::all_reduce", {a}, {same})[0]); break;
      case 3: values.push_back(builder.addCall("aten::neg", {a}, {same})[0]); break;
    }
  }
  for (int i = 0; i < 3; ++i) builder.addOutput(fmt::format("y{}", i), values[pick(values.size())]);
  return std::make_shared<const Graph>(*std::move(builder).finish());
}

}  // namespace

class TestPredict : public QObject {
  Q_OBJECT
 private slots:
  void followsLivenessOverTheProgram() {
    const Plan plan = planned(requestFor(kMlp, context(2), kMlpSplit));
    // x, up.weight, up.bias; linear_0 128; relu_0 128; weights; partial, reduced, linear_1, add_0 128 each.
    QCOMPARE(plan.memory.liveAfter, (std::vector<std::int64_t>{0, 0, 0, 128, 128, 128, 128, 128, 128, 128, 128}));
    QCOMPARE(plan.memory.peakActivations, std::int64_t{256});
    QCOMPARE(plan.program->value(plan.program->node(plan.memory.peakNode).results[0]).name, std::string("relu_0"));
    QCOMPARE(plan.memory.parameters, std::int64_t{(64 + 8 + 64 + 8) * 4});
    QCOMPARE(plan.memory.replicatedParameters, std::int64_t{8 * 4});
    QCOMPARE(plan.memory.inputs, std::int64_t{128});
  }

  void agreesWithBruteForceOnRandomPrograms() {
    std::mt19937_64 random(test::seed());
    for (std::uint64_t left = test::rounds(200); left > 0; --left) {
      PlanRequest request;
      const auto graph = randomProgram(random);
      request.problem = std::make_shared<const solve::Problem>(solve::Problem{graph, context(1), {}});
      solve::Solution solution;
      solution.placements.resize(graph->values.size());
      solution.strategies.resize(graph->nodes.size());
      request.solution = std::make_shared<const solve::Solution>(std::move(solution));
      const Plan plan = planned(request);
      QCOMPARE(plan.memory.liveAfter, liveByBruteForce(*graph));
      QVERIFY(plan.memory.peakActivations >=
              *std::max_element(plan.memory.liveAfter.begin(), plan.memory.liveAfter.end()));
    }
  }

  void viewsKeepTheirBaseAliveAndOwnNothing() {
    const Plan plan = planned(
        requestFor("x: f32[4] = input\nneg_0: f32[4] = aten::neg(x)\nview_0: f32[2,2] = aten::view(neg_0, [2,2])\n"
                   "exp_0: f32[4] = aten::exp(x)\nabs_0: f32[2,2] = aten::abs(view_0)\nreturn y=abs_0\n",
                   context(1), {}));
    QCOMPARE(plan.memory.liveAfter, (std::vector<std::int64_t>{0, 16, 16, 16, 16}));
    QCOMPARE(plan.memory.peakActivations, std::int64_t{32});
  }

  void gathersAlongAnInnerDimensionNeedWorkspace() {
    constexpr const char* text =
        "x: f32[2,4] = input\nw: f32[6,4] = parameter @fc\nlinear_0: f32[2,6] = aten::linear(x, w, None) @fc\nreturn "
        "y=linear_0\n";
    const Plan plan = planned(requestFor(text, context(2), {{"fc", rules::Strategy::Column}}));
    QCOMPARE(plan.memory.workspaceAtPeak, std::int64_t{48});
    QCOMPARE(plan.memory.peakActivations, std::int64_t{24 + 48 + 48});
  }

  /// The workspace of one Mixtral 8x7B expert for its share of 4096 tokens, with all features and with a part of them.
  /// tst_training_cost has the same numbers.
  void expertsNeedWorkspace() {
    const auto program = graph::parseGraph(
        "h: bf16[4096,4096] = input\nids: i64[4096,2] = input\nshares: bf16[4096,2] = input\n"
        "a.gate_up: bf16[1,28672,4096] = parameter\na.down: bf16[1,4096,14336] = parameter\n"
        "b.gate_up: bf16[8,3584,4096] = parameter\nb.down: bf16[8,4096,1792] = parameter\n"
        "x: bf16[4096,4096] = cleave::local_experts(h, ids, shares, a.gate_up, a.down, \"silu\", None, 1.0, 0.0, 8)\n"
        "y: bf16[4096,4096] = cleave::moe_experts(x, ids, shares, b.gate_up, b.down, \"silu\", None, 1.0, 0.0)\nreturn "
        "y=y\n");
    const MemoryPrediction memory = predictMemory(*program, {}, *program);
    constexpr std::int64_t kTokens = 4096 * 4096 * 2;
    QCOMPARE(memory.peakActivations, kTokens + 125'845'504);
    QCOMPARE(memory.workspaceAtPeak, std::int64_t{125'845'504});
  }
};

QTEST_APPLESS_MAIN(TestPredict)
#include "tst_predict.moc"
