#include "program/rank_program.h"

#include "base/checked.h"
#include "base/digest.h"
#include "formats/exported_program.h"
#include "formats/exported_weights.h"
#include "formats/weight_files.h"
#include "graph/json.h"
#include "graph/type_text.h"
#include "program/check.h"

#include <nlohmann/json.hpp>

#include <unordered_map>
#include <unordered_set>

namespace cleave::program {
namespace {

constexpr IntegerRange kSizes{0, kMaxSize};
constexpr std::int64_t kMaxTensorsPerItem = 64;
constexpr std::size_t kMostBlocks = 100'000;

class ProgramReader {
 public:
  explicit ProgramReader(const JsonObject& plan) : m_root(plan) {}

  Result<RankProgram> read() && {
    CLEAVE_TRY_VOID(readSchema());
    CLEAVE_TRY(const JsonObject model, m_root.object("model"));
    CLEAVE_TRY(m_made.source, model.text("source"));
    if (m_made.source.size() > kMostPathBytes)
      return model.wrong("source", fmt::format("a path of at most {} bytes", kMostPathBytes));
    CLEAVE_TRY(m_made.isExported, model.flag("exported", false));
    CLEAVE_TRY(m_made.weights, model.text("weights", ""));
    CLEAVE_TRY(m_made.quantization, model.text("quantization", ""));
    CLEAVE_TRY(const std::int64_t ranks, m_root.integer("ranks", {1, kMaxRanks}));
    m_made.ranks = static_cast<int>(ranks);
    CLEAVE_TRY(m_made.seed, m_root.count("seed"));
    if (m_root.has("checkpointed")) {
      CLEAVE_TRY(m_made.checkpointed, m_root.texts("checkpointed", kMostBlocks));
    }
    CLEAVE_TRY_VOID(readGraph());
    CLEAVE_TRY_VOID(readParameters());
    return std::move(m_made);
  }

 private:
  Result<void> readSchema() {
    CLEAVE_TRY(const std::string schema, m_root.text("schema"));
    CLEAVE_TRY(const bool isSolved, m_root.flag("solved", true));
    if (!isSolved)
      return fail(ErrorCode::BadInput,
                  "The file holds no plan, but the reason why no plan was found. Make a plan with `cleave-cli plan`.");
    if (schema == kPlanSchema) return {};
    if (schema.starts_with("cleave.plan/")) {
      return fail(
          ErrorCode::BadInput,
          "The plan file has version {}, but this program reads {}. Make the plan again with `cleave-cli plan`.",
          quotedText(schema), kPlanSchema);
    }
    return fail(ErrorCode::BadInput, "The file is not a plan: its schema is {}, expected \"{}\".", quotedText(schema),
                kPlanSchema);
  }

  Result<void> readGraph() {
    CLEAVE_TRY(const JsonObject program, m_root.object("program"));
    CLEAVE_TRY(graph::Graph graph, withContext(graph::graphFromJson(program.json()), "plan.program"));
    CLEAVE_TRY_VOID(withContext(checkOperators(graph), "plan.program"));
    CLEAVE_TRY_VOID(withContext(checkCollectives(graph, m_made.ranks), "plan.program"));
    CLEAVE_TRY_VOID(withContext(checkTotalBytes(graph), "plan.program"));
    m_made.graph = std::make_shared<const graph::Graph>(std::move(graph));
    for (const auto id : idRange<graph::ValueId>(m_made.graph->values.size()))
      m_values.emplace(m_made.graph->value(id).name, id);
    return {};
  }

  Result<void> readParameters() {
    CLEAVE_TRY(const JsonArray parameters, m_root.array("parameters"));
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      CLEAVE_TRY(const JsonObject fields, parameters.object(i));
      CLEAVE_TRY(ParameterShards parameter, readParameter(fields));
      if (!names.insert(parameter.name).second)
        return fail(ErrorCode::BadInput, "{}: {} is given twice.", fields.where(), parameter.name);
      m_made.parameters.push_back(std::move(parameter));
    }
    for (const graph::Node& node : m_made.graph->nodes) {
      if (node.kind != graph::NodeKind::Parameter) continue;
      const std::string& name = m_made.graph->value(node.results[0]).name;
      if (!names.contains(name))
        return fail(ErrorCode::BadInput, "plan.parameters lacks {}, which the program reads.", name);
    }
    return checkParameterBytes();
  }

  Result<ParameterShards> readParameter(const JsonObject& fields) const {
    ParameterShards parameter;
    CLEAVE_TRY(parameter.name, fields.text("name"));
    CLEAVE_TRY(parameter.type.dtype, fields.word("dtype", graph::parseDType));
    CLEAVE_TRY(parameter.storedDtype, fields.word("stored_dtype", graph::parseDType));
    CLEAVE_TRY(parameter.type.shape, fields.integers("shape", kSizes, graph::kMaxDimensions));
    CLEAVE_TRY(parameter.localShape, fields.integers("local_shape", kSizes, graph::kMaxDimensions));
    CLEAVE_TRY(parameter.placement, readPlacement(fields, "placement", parameter.type.shape, m_made.ranks));
    const auto held = m_values.find(parameter.name);
    const graph::TensorType local{parameter.type.dtype, parameter.localShape};
    if (held == m_values.end() || m_made.graph->value(held->second).type != local ||
        m_made.graph->node(m_made.graph->value(held->second).producer).kind != graph::NodeKind::Parameter) {
      return fail(ErrorCode::BadInput, "{}: the program has no parameter {} of type {}.", fields.where(),
                  quotedText(parameter.name), graph::toText(local));
    }
    if (parameter.placement.localShape(parameter.type.shape, m_made.ranks) != parameter.localShape) {
      return fail(ErrorCode::BadInput, "{}: {} of shape {} does not become {} on {} ranks.", fields.where(),
                  parameter.placement.text(), graph::toText(parameter.type.shape), graph::toText(parameter.localShape),
                  m_made.ranks);
    }
    CLEAVE_TRY_VOID(readStacked(fields, parameter));
    CLEAVE_TRY(parameter.piecesByRank, readPieces(fields, parameter));
    return parameter;
  }

  static Result<void> readStacked(const JsonObject& fields, ParameterShards& parameter) {
    constexpr std::string_view kKey = "tensors_per_item";
    if (!fields.has(kKey)) return {};
    CLEAVE_TRY(const std::int64_t tensors, fields.integer(kKey, {1, kMaxTensorsPerItem}));
    const graph::Shape& shape = parameter.type.shape;
    if (shape.size() < 2 || shape[1] % tensors != 0) {
      return fail(ErrorCode::BadInput, "{}: items of shape {} are not made of {} equal tensors.", fields.where(),
                  graph::toText(shape), tensors);
    }
    parameter.stacked = static_cast<int>(tensors);
    return {};
  }

  Result<std::vector<std::vector<ShardPiece>>> readPieces(const JsonObject& fields,
                                                          const ParameterShards& parameter) const {
    std::vector<std::vector<ShardPiece>> byRank(static_cast<std::size_t>(m_made.ranks));
    CLEAVE_TRY(const JsonArray pieces, fields.array("pieces"));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      CLEAVE_TRY(const JsonObject piece, pieces.object(i));
      CLEAVE_TRY(const std::int64_t rank, piece.integer("rank", {0, m_made.ranks - 1}));
      CLEAVE_TRY(byRank[static_cast<std::size_t>(rank)].emplace_back(), readPiece(piece, parameter));
    }
    for (int rank = 0; rank < m_made.ranks; ++rank) {
      CLEAVE_TRY_VOID(withContext(checkPieces(parameter, byRank[static_cast<std::size_t>(rank)], m_made.ranks, rank),
                                  fields.where()));
    }
    return byRank;
  }

  Result<ShardPiece> readPiece(const JsonObject& fields, const ParameterShards& parameter) const {
    const graph::Shape shape = parameter.storedShape();
    ShardPiece piece;
    CLEAVE_TRY(piece.tensor, fields.text("tensor"));
    CLEAVE_TRY(piece.file, fields.text("file"));
    const bool isArchive = m_made.isExported && piece.file == formats::exportedFileName(m_made.source);
    if (!piece.file.empty() && !isArchive)
      CLEAVE_TRY_VOID(withContext(formats::checkWeightFileName(piece.file), fields.nameOf("file")));
    CLEAVE_TRY(const std::int64_t dim, fields.integer("dim", {-1, std::ssize(shape) - 1}));
    CLEAVE_TRY(piece.start, fields.integer("start", {0, kMaxSize}));
    CLEAVE_TRY(piece.length, fields.integer("length", {0, kMaxSize}));
    const std::int64_t size = dim < 0 ? 1 : shape[static_cast<std::size_t>(dim)];
    if (piece.start > size - piece.length) {
      return fail(ErrorCode::BadInput, "{}: elements {} to {} are outside dimension {} of {} {}.", fields.where(),
                  piece.start, piece.start + piece.length, dim, parameter.name, graph::toText(shape));
    }
    const bool isWhole = piece.length == size;
    piece.dim = isWhole ? -1 : static_cast<int>(dim);
    if (isWhole) piece.start = piece.length = 0;
    return piece;
  }

  Result<void> checkParameterBytes() const {
    std::int64_t total = 0;
    for (const ParameterShards& parameter : m_made.parameters) {
      const auto elements = checkedProduct(parameter.type.shape);
      const auto bytes = elements ? checkedMul(*elements, 8) : std::nullopt;
      const auto sum = bytes ? checkedAdd(total, *bytes) : std::nullopt;
      if (!sum)
        return fail(ErrorCode::BadInput, "plan.parameters: {} of shape {} does not fit 64-bit sizes.", parameter.name,
                    graph::toText(parameter.type.shape));
      total = *sum;
    }
    return {};
  }

  const JsonObject& m_root;
  RankProgram m_made;
  std::unordered_map<std::string_view, graph::ValueId> m_values;  ///< parameters of the program, by name
};

void writePiece(JsonWriter& json, const ParameterShards& parameter, int rank, const ShardPiece& piece) {
  const graph::Shape shape = parameter.storedShape();
  const bool isWhole = piece.dim < 0;
  json.beginObject();
  json.key("rank").value(rank);
  json.key("tensor").value(piece.tensor);
  json.key("file").value(piece.file);
  json.key("dim").value(isWhole && !shape.empty() ? 0 : piece.dim);
  json.key("start").value(piece.start);
  json.key("length").value(!isWhole ? piece.length : shape.empty() ? 1 : shape[0]);
  json.endObject();
}

}  // namespace

void writeParameters(JsonWriter& json, const ShardMap& parameters) {
  json.key("parameters").beginArray();
  for (const ParameterShards& parameter : parameters) {
    json.beginObject();
    json.key("name").value(parameter.name);
    json.key("dtype").value(graph::toText(parameter.type.dtype));
    json.key("stored_dtype").value(graph::toText(parameter.storedDtype));
    json.key("shape").values(parameter.type.shape);
    json.key("local_shape").values(parameter.localShape);
    json.key("placement").value(parameter.placement.text());
    if (parameter.stacked != 0) json.key("tensors_per_item").value(parameter.stacked);
    json.key("pieces").beginArray();
    for (std::size_t rank = 0; rank < parameter.piecesByRank.size(); ++rank) {
      for (const ShardPiece& piece : parameter.piecesByRank[rank])
        writePiece(json, parameter, static_cast<int>(rank), piece);
    }
    json.endArray();
    json.endObject();
  }
  json.endArray();
}

Result<rules::Placement> readPlacement(const JsonObject& fields, const char* key, const graph::Shape& shape,
                                       int ranks) {
  CLEAVE_TRY(const std::string text, fields.text(key));
  const auto placement = rules::Placement::parse(text);
  if (!placement)
    return fail(ErrorCode::BadInput, "{}.{} {} is not a placement such as R or S(1).", fields.where(), key,
                quotedText(text));
  if (!placement->localShape(shape, ranks)) {
    return fail(ErrorCode::BadInput, "{}.{} {} does not fit shape {} on {} ranks: {}.", fields.where(), key,
                placement->text(), graph::toText(shape), ranks, placement->whyNotDivisible(shape, ranks));
  }
  return *placement;
}

std::string whyNotRun(std::string_view source, std::string_view quantization) {
  return fmt::format(
      "{} is quantized ({}). Cleave plans it but does not run it. Save it dequantized (model.dequantize() in "
      "transformers) and run that folder.",
      source, quantization);
}

Result<RankProgram> rankProgramFromJson(const JsonObject& plan) { return ProgramReader(plan).read(); }

Result<RankProgram> readRankProgram(const fs::path& planFile) {
  CLEAVE_TRY(const std::string text, readTextFile(planFile, kPlanLimits.bytes));
  const auto read = [&]() -> Result<RankProgram> {
    CLEAVE_TRY(const nlohmann::json json, parseJson(text, "The plan", kPlanLimits));
    CLEAVE_TRY(const JsonObject root, JsonObject::at(json, "plan"));
    return rankProgramFromJson(root);
  };
  return withContext(read(), planFile.string());
}

void writeCheckpointed(JsonWriter& json, const std::vector<std::string>& blocks) {
  if (blocks.empty()) return;
  json.key("checkpointed").beginArray();
  for (const std::string& block : blocks) json.value(block);
  json.endArray();
}

std::string toJson(const RankProgram& program) {
  JsonWriter json;
  json.beginObject();
  json.key("schema").value(kPlanSchema);
  json.key("model").beginObject();
  json.key("source").value(program.source);
  if (program.isExported) json.key("exported").value(true);
  if (!program.weights.empty()) json.key("weights").value(program.weights);
  if (!program.quantization.empty()) json.key("quantization").value(program.quantization);
  json.endObject();
  json.key("ranks").value(program.ranks);
  json.key("seed").value(program.seed);
  writeCheckpointed(json, program.checkpointed);
  writeParameters(json, program.parameters);
  graph::writeGraph(json.key("program"), *program.graph);
  json.endObject();
  return std::move(json).take();
}

std::uint64_t digestOf(const RankProgram& program) {
  RankProgram common = program;
  common.source.clear();
  common.weights.clear();
  Digest digest;
  digest.add(toJson(common));
  return digest.value();
}

}  // namespace cleave::program
