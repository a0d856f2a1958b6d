/// Plans of small graphs, run on ranks and compared with the unsplit graph: tests rules and strategies together.
#include "tests/libtorch/rank/ranks_as_threads.h"

#include "solve/checker.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/seeds.h"

#include <random>
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"

using namespace cleave;
using namespace cleave::tests;
using plan::testing::Strategies;
using rules::Strategy;
using torch_rank::LiveMemory;
using torch_rank::NamedTensors;
using torch_rank::Program;

namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// Values for inputs and parameters. Integers are less than `below`, so they can be token ids, labels and experts.
Tensors drawn(const graph::Graph& graph, std::int64_t below) {
  Tensors tensors;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Input && node.kind != graph::NodeKind::Parameter) continue;
    const graph::Value& value = graph.value(node.results[0]);
    const bool isReal = graph::isFloatingPoint(value.type.dtype);
    tensors[value.name] = isReal ? at::randn(value.type.shape) : at::randint(below, value.type.shape, at::kLong);
  }
  return tensors;
}

/// A rank's part of a parameter, from its pieces. Elements outside all pieces stay zero.
at::Tensor partOf(const program::ParameterShards& parameter, const at::Tensor& whole, int rank) {
  at::Tensor part = at::zeros(parameter.localShape, whole.options());
  std::int64_t start = 0;
  for (const program::ShardPiece& piece : parameter.piecesByRank[static_cast<std::size_t>(rank)]) {
    if (piece.dim < 0) return whole;
    part.narrow(piece.dim, start, piece.length).copy_(whole.narrow(piece.dim, piece.start, piece.length));
    start += piece.length;
  }
  return part;
}

NamedTensors runWhole(const std::shared_ptr<const graph::Graph>& graph, const Tensors& tensors) {
  Program program = need(Program::bind(graph, at::kCPU));
  for (const auto& [name, tensor] : tensors) give(program, name, tensor);
  return runAlone(program);
}

NamedTensors runAsRank(const plan::Plan& plan, const Tensors& tensors, torch_rank::Collectives& collectives) {
  Program program = need(Program::bind(plan.program, at::kCPU));
  for (const auto& [name, tensor] : tensors) {
    const auto parameter =
        std::find_if(plan.parameters.begin(), plan.parameters.end(), [&](const auto& p) { return p.name == name; });
    give(program, name, parameter == plan.parameters.end() ? tensor : partOf(*parameter, tensor, collectives.rank()));
  }
  LiveMemory memory;
  return need(program.run(collectives, memory));
}

std::string expertsGraph(int experts, int features, const char* activation) {
  return fmt::format(
      "x: f32[6,8] = input\nids: i64[6,2] = input\nscores: f32[6,2] = input\n"
      "shares: f32[6,2] = aten::_softmax(scores, -1, false)\n"
      "mlp.gate_up: f32[{0},{2},8] = parameter @mlp\nmlp.down: f32[{0},8,{1}] = parameter @mlp\n"
      "moe_0: f32[6,8] = cleave::moe_experts(x, ids, shares, mlp.gate_up, mlp.down, \"{3}\", None, 1.0, 0.0) @mlp\n"
      "add_0: f32[6,8] = aten::add.Tensor(x, moe_0, 1)\nreturn y=add_0\n",
      experts, features, 2 * features, activation);
}

/// A soft cap, a shift and a cast between a padded head and its loss, as in gemma2 of transformers.
const char* const kCappedHead =
    "tied embed.weight head.weight\n"
    "ids: i64[2,5] = input\nlabels: i64[8] = input\nembed.weight: f32[13,8] = parameter @embed\n"
    "embedding_0: f32[2,5,8] = aten::embedding(embed.weight, ids, -1, false, false) @embed\n"
    "linear_0: f32[2,5,13] = aten::linear(embedding_0, embed.weight, None) @head\n"
    "div_0: f32[2,5,13] = aten::div.Scalar(linear_0, 5.0)\ntanh_0: f32[2,5,13] = aten::tanh(div_0)\n"
    "mul_0: f32[2,5,13] = aten::mul.Scalar(tanh_0, 5.0)\n"
    "slice_0: f32[2,4,13] = aten::slice.Tensor(mul_0, 1, 0, 4, 1)\nview_0: f32[8,13] = aten::view(slice_0, [8,13])\n"
    "loss_0: f32[] = aten::cross_entropy_loss(view_0, labels, None, 1, -100, 0.0)\nreturn logits=mul_0, loss=loss_0\n";

}  // namespace

class ExecPlansTest : public QObject {
  Q_OBJECT
 private slots:
  void init() { at::manual_seed(11); }

  void ranksComputeWhatOneDoes_data() {
    QTest::addColumn<std::string>("graph");
    QTest::addColumn<Strategies>("strategies");
    QTest::addColumn<QList<int>>("worlds");
    QTest::addColumn<int>("below");
    const auto row = [](const char* name, std::string graph, Strategies strategies, QList<int> worlds, int below) {
      QTest::newRow(name) << std::move(graph) << std::move(strategies) << worlds << below;
    };
    const Strategies head{{"embed", Strategy::Vocab}, {"head", Strategy::Column}};
    Strategies headAndLoss = head, gathered = head;
    headAndLoss["loss_0"] = Strategy::Vocab;
    gathered["head"] = Strategy::ColumnGather;
    row("padded head, cap and loss", kCappedHead, headAndLoss, {2, 3, 4}, 13);
    row("padded head, gathered", kCappedHead, gathered, {2, 3, 4}, 13);
    row("padded vocabulary in a decoder", plan::testing::decoderWithVocabulary(13), plan::testing::kDecoderSplit, {2},
        13);
    row("experts by expert", expertsGraph(12, 6, "silu"), {{"mlp", Strategy::ByExpert}}, {2, 3, 4}, 12);
    row("experts inside each", expertsGraph(5, 12, "gelu_tanh"), {{"mlp", Strategy::InExpert}}, {2, 3, 4}, 5);
    row("whole experts", expertsGraph(5, 7, "relu"), {{"mlp", Strategy::Replicated}}, {2}, 5);
  }
  void ranksComputeWhatOneDoes() {
    QFETCH(std::string, graph);
    QFETCH(Strategies, strategies);
    QFETCH(QList<int>, worlds);
    QFETCH(int, below);
    for (const int ranks : worlds) {
      const auto request = plan::testing::requestFor(
          graph, {ranks, rules::CandidateSet::Full, rules::SequenceParallel::Off}, strategies);
      QCOMPARE(solve::check(*request.problem, *request.solution), std::vector<std::string>());
      computesTheSame(request, below);
    }
  }

  /// Any value may be redistributed after it is computed, and some must be.
  void redistributedValuesComputeTheSame_data() {
    QTest::addColumn<std::string>("graph");
    QTest::newRow("mlp") << std::string(plan::testing::kMlp);
    QTest::newRow("decoder") << std::string(plan::testing::kDecoder);
  }
  void redistributedValuesComputeTheSame() {
    QFETCH(std::string, graph);
    std::mt19937_64 random(test::seed());
    const auto parsed = plan::testing::parsed(graph);
    int gathered = 0, cut = 0;
    for (std::uint64_t draw = 0, draws = test::rounds(60); draw < draws; ++draw) {
      plan::testing::Demands demands{{}, {}, {"*"}};
      for (int pin = 0; pin < 3; ++pin) {
        const graph::Value& value = parsed->values[random() % parsed->values.size()];
        if (parsed->node(value.producer).kind != graph::NodeKind::Call) continue;
        const std::size_t dims = value.type.shape.size();
        const bool isWhole = dims == 0 || random() % 2 == 0;
        const auto placement =
            isWhole ? rules::Placement() : rules::Placement::split(static_cast<int>(random() % dims));
        demands.pins.push_back(value.name + "=" + placement.text());
      }
      const rules::StrategyContext context{2,
                                           random() % 2 == 0 ? rules::CandidateSet::Full : rules::CandidateSet::Optimum,
                                           rules::SequenceParallel::Off};
      const auto request = plan::testing::solutionUnder(graph, context, demands);
      if (!request) continue;
      for (const auto& [value, computed] : request->solution->computedAs) ++(computed.isSplit() ? gathered : cut);
      computesTheSame(*request, 12);
    }
    qInfo("%d values gathered, %d cut", gathered, cut);
    QVERIFY(test::rounds(60) < 60 || (gathered > 0 && cut > 0));
  }

  void namesAnExpertThatIsOutOfRange() {
    const auto graph = test::parsedGraph(expertsGraph(3, 4, "silu"));
    Program program = need(Program::bind(graph, at::kCPU));
    Tensors tensors = drawn(*graph, 3);
    tensors["ids"][4][1] = 7;
    for (const auto& [name, tensor] : tensors) give(program, name, tensor);
    const auto solo = torch_rank::makeSoloCollectives();
    LiveMemory memory;
    const auto ran = program.run(*solo, memory);
    QVERIFY(!ran);
    QVERIFY2(ran.error().message.find("expert 7 is out of range: the layer has 3 experts") != std::string::npos,
             ran.error().message.c_str());
  }

 private:
  /// Writes and reads the plan of a solution, runs it on ranks and compares with the unsplit graph.
  static void computesTheSame(const plan::PlanRequest& request, int below) {
    const int ranks = request.problem->context.worldSize;
    const plan::Plan plan = need(plan::planFromJson(plan::toJson(plan::testing::planned(request))));
    const Tensors tensors = drawn(*plan.graph, below);
    const NamedTensors whole = runWhole(plan.graph, tensors);
    std::vector<NamedTensors> results(static_cast<std::size_t>(ranks));
    asRanks(ranks, [&](torch_rank::Collectives& c) {
      results[static_cast<std::size_t>(c.rank())] = runAsRank(plan, tensors, c);
    });
    for (const NamedTensors& result : results) {
      QCOMPARE(result.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        QCOMPARE(result[i].second.sizes().vec(), whole[i].second.sizes().vec());
        const double difference = (result[i].second - whole[i].second).abs().max().item<double>();
        QVERIFY2(difference < 1e-4,
                 fmt::format("{} on {} ranks differs by {}", whole[i].first, ranks, difference).c_str());
      }
    }
  }
};

QTEST_GUILESS_MAIN(ExecPlansTest)
#include "tst_plans_on_ranks.moc"
