#include "plan/build/make_plan.h"
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;
using graph::DType;

namespace {

/// All parameters of the decoder in bf16, each in its own file.
formats::WeightSources decoderCheckpoint() {
  const auto graph = parsed(kDecoder);
  formats::WeightSources checkpoint;
  for (const graph::Node& node : graph->nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    const graph::Value& value = graph->value(node.results[0]);
    checkpoint[value.name] = {{DType::BFloat16, value.type.shape}, value.name + ".safetensors"};
  }
  return checkpoint;
}

const ParameterShards& parameter(const Plan& plan, const std::string& name) {
  for (const ParameterShards& found : plan.parameters) {
    if (found.name == name) return found;
  }
  qFatal("no parameter %s", name.c_str());
}

/// Parameters with a piece that is in no file.
std::vector<std::string> missingParameters(const Plan& plan) {
  std::vector<std::string> names;
  for (const ParameterShards& found : plan.parameters) {
    bool isStored = true;
    for (int rank = 0; rank < plan.spec.ranks; ++rank) isStored = isStored && found.isStoredFor(rank);
    if (!isStored) names.push_back(found.name);
  }
  return names;
}

std::string errorOf(const PlanRequest& request) {
  const auto plan =
      makePlan(request, explainReplication(*request.problem, *request.solution, request.engine, request.optimum.get()));
  return plan ? std::string() : plan.error().message;
}

}  // namespace

class TestShardMap : public QObject {
  Q_OBJECT
 private slots:
  void splitsColumnsRowsAndVocabularies() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    const Plan plan = planned(request);
    QCOMPARE(parameter(plan, "embed.weight").localShape, (Shape{6, 8}));
    QCOMPARE(parameter(plan, "embed.weight").piecesByRank[1],
             (std::vector<ShardPiece>{{"embed.weight", "embed.weight.safetensors", 0, 6, 6}}));
    QCOMPARE(parameter(plan, "attn.o.weight").piecesByRank[1],
             (std::vector<ShardPiece>{{"attn.o.weight", "attn.o.weight.safetensors", 1, 4, 4}}));
    QCOMPARE(parameter(plan, "norm.weight").piecesByRank[1],
             (std::vector<ShardPiece>{{"norm.weight", "norm.weight.safetensors"}}));
    QCOMPARE(parameter(plan, "norm.weight").storedDtype, DType::BFloat16);
    QVERIFY(missingParameters(plan).empty());
    QVERIFY(plan.warnings.empty());
  }

  void lastRanksReadLessOfAPaddedVocabulary() {
    PlanRequest request = requestFor(
        decoderWithVocabulary(13), context(2, rules::SequenceParallel::Off, rules::CandidateSet::Full), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    request.checkpoint["embed.weight"].type.shape = {13, 8};
    const Plan plan = planned(request);
    QCOMPARE(parameter(plan, "embed.weight").localShape, (Shape{7, 8}));
    QCOMPARE(parameter(plan, "embed.weight").piecesByRank[0],
             (std::vector<ShardPiece>{{"embed.weight", "embed.weight.safetensors", 0, 0, 7}}));
    QCOMPARE(parameter(plan, "embed.weight").piecesByRank[1],
             (std::vector<ShardPiece>{{"embed.weight", "embed.weight.safetensors", 0, 7, 6}}));
    QCOMPARE(program::shardBytes(plan.parameters, 0) - program::shardBytes(plan.parameters, 1), std::int64_t{8 * 2});
  }

  void piecesOfAllRanksCoverEveryParameterOnce() {
    for (int ranks : {1, 2}) {
      PlanRequest request = requestFor(kDecoder, context(ranks), kDecoderSplit);
      request.checkpoint = decoderCheckpoint();
      const Plan plan = planned(request);
      int split = 0;
      for (const ParameterShards& p : plan.parameters) {
        QCOMPARE(p.piecesByRank.size(), static_cast<std::size_t>(ranks));
        if (p.placement.isReplicated()) continue;
        ++split;
        const auto size = static_cast<std::size_t>(p.type.shape[static_cast<std::size_t>(p.placement.firstDim())]);
        std::vector<int> held(size);
        for (const auto& pieces : p.piecesByRank) {
          for (const ShardPiece& piece : pieces) {
            for (std::int64_t i = 0; i < piece.length; ++i) ++held[static_cast<std::size_t>(piece.start + i)];
          }
        }
        QCOMPARE(held, std::vector<int>(size, 1));
      }
      QCOMPARE(split, ranks == 1 ? 0 : 5);  // the embedding and four attention weights
    }
  }

  void countsBytesReadPerRank() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    const Plan plan = planned(request);
    // Stored in bf16: half of embed 96, q 64, k 32, v 32 and o 64 elements, and all 8 elements of the norm.
    QCOMPARE(program::shardBytes(plan.parameters, 0), std::int64_t{(48 + 32 + 16 + 16 + 32 + 8) * 2});
    QCOMPARE(program::shardBytes(plan.parameters, 1), program::shardBytes(plan.parameters, 0));
    QCOMPARE(plan.memory.parameters, std::int64_t{(48 + 32 + 16 + 16 + 32 + 8) * 4});
  }

  void readsTiedParametersUnderEitherName() {
    for (const char* stored : {"embed.weight", "head.weight"}) {
      PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
      request.checkpoint = decoderCheckpoint();
      request.checkpoint.erase("embed.weight");
      request.checkpoint[stored] = {{DType::Float32, {12, 8}}, "tied.safetensors"};
      const Plan plan = planned(request);
      QCOMPARE(parameter(plan, "embed.weight").piecesByRank[0][0].tensor, std::string(stored));
      QVERIFY(missingParameters(plan).empty());
      QVERIFY(plan.warnings.empty());
    }
  }

  void listsParametersTheCheckpointLacks() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    request.checkpoint.erase("norm.weight");
    request.checkpoint.erase("attn.k.weight");
    const Plan plan = planned(request);
    QCOMPARE(missingParameters(plan), (std::vector<std::string>{"attn.k.weight", "norm.weight"}));
    QCOMPARE(parameter(plan, "attn.k.weight").piecesByRank[1],
             (std::vector<ShardPiece>{{"attn.k.weight", "", 0, 2, 2}}));
    QCOMPARE(program::shardBytes(plan.parameters, 0), std::int64_t{(48 + 32 + 16 + 32) * 2});
    QCOMPARE(plan.warnings, (std::vector<std::string>{"The checkpoint lacks 2 of the model's 6 parameters: "
                                                      "attn.k.weight, norm.weight. A run needs them."}));
    request.checkpoint.clear();  // a config without a checkpoint lacks no weights
    QVERIFY(planned(request).warnings.empty());
  }

  void warnsOfTensorsTheModelDoesNotUse() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    request.checkpoint["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{DType::Float32, {4}}, "a.safetensors"};
    QVERIFY(planned(request).warnings.empty());
    request.checkpoint["score.weight"] = {{DType::Float32, {4}}, "a.safetensors"};
    QCOMPARE(planned(request).warnings,
             (std::vector<std::string>{"One tensor of the checkpoint is not used by this model: score.weight."}));
    for (int i = 0; i < 9; ++i)
      request.checkpoint[fmt::format("extra.{}", i)] = {{DType::Float32, {4}}, "a.safetensors"};
    QCOMPARE(planned(request).warnings,
             (std::vector<std::string>{"10 tensors of the checkpoint are not used by this model: extra.0, extra.1, "
                                       "extra.2, extra.3 and 6 more."}));
  }

  void refusesTensorsOfAnotherShapeOrType() {
    PlanRequest request = requestFor(kDecoder, context(2), kDecoderSplit);
    request.checkpoint = decoderCheckpoint();
    request.checkpoint["attn.o.weight"].type.shape = {8, 4};
    QCOMPARE(
        errorOf(request),
        std::string("attn.o.weight.safetensors: tensor attn.o.weight has shape [8, 4], but the model needs [8, 8]. Use "
                    "the weights that belong to this config.json."));
    request.checkpoint["attn.o.weight"].type = {DType::Int8, {8, 8}};
    QVERIFY(errorOf(request).find("stored as i8, but the model computes in f32. Quantized") != std::string::npos);
  }

  void piecesFollowBlocksReplicasAndPadding() {
    struct Row {
      const char* placement;
      Shape shape;
      std::vector<ShardPiece> ofLastRank;
    };
    const Row rows[] = {
        {"S(0,x2)", {8, 2}, {{"w", "", 0, 4, 4}}},
        {"S(0,b[8,4,4])", {16, 2}, {{"w", "", 0, 6, 2}, {"w", "", 0, 11, 1}, {"w", "", 0, 15, 1}}},
        {"S(0,pad 2)", {6, 2}, {}},
    };
    for (const Row& row : rows) {
      const std::string text = fmt::format("w: {} = parameter\n", graph::toText({DType::Float32, row.shape}));
      PlanRequest request = requestFor(text, context(4), {});
      solve::Solution solution = *request.solution;
      solution.placements[0] = *Placement::parse(row.placement);
      request.solution = std::make_shared<const solve::Solution>(std::move(solution));
      const Plan plan = planned(request);
      QCOMPARE(plan.parameters[0].piecesByRank[3], row.ofLastRank);
      const auto again = planFromJson(toJson(plan));
      QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
      QCOMPARE(again->parameters[0].piecesByRank, plan.parameters[0].piecesByRank);
    }
  }
};

QTEST_APPLESS_MAIN(TestShardMap)
#include "tst_shard_map.moc"
