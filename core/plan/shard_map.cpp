#include "plan/steps.h"

#include <algorithm>
#include <unordered_set>

namespace cleave::plan {
namespace {

constexpr std::size_t kNamesInWarning = 4;

/// The parameter's tensor in the checkpoint: under its own name, or one it is tied to; end() when it lacks all of them.
formats::WeightSources::const_iterator findStored(const formats::WeightSources& checkpoint, const Graph& graph,
                                                  const std::string& name) {
  if (const auto own = checkpoint.find(name); own != checkpoint.end()) return own;
  if (const auto tied = graph.tiedNames.find(name); tied != graph.tiedNames.end()) {
    for (const std::string& other : tied->second) {
      if (const auto found = checkpoint.find(other); found != checkpoint.end()) return found;
    }
  }
  return checkpoint.end();
}

Result<void> checkStored(const graph::Value& parameter, const std::string& name, const formats::WeightSource& stored) {
  if (stored.type.shape != parameter.type.shape) {
    return fail(ErrorCode::BadInput,
                "{}: tensor {} has shape {}, but the model needs {}: the weights do not belong to this config.json.",
                stored.file, name, graph::toText(stored.type.shape), graph::toText(parameter.type.shape));
  }
  const bool isNarrow = graph::itemSize(stored.type.dtype) < 2;
  if (stored.type.dtype != parameter.type.dtype && (!graph::isFloatingPoint(stored.type.dtype) || isNarrow)) {
    return fail(ErrorCode::BadInput,
                "{}: tensor {} is stored as {}, but the model computes in {}: quantised weights cannot be used, "
                "convert them to bf16 first.",
                stored.file, name, graph::toText(stored.type.dtype), graph::toText(parameter.type.dtype));
  }
  return {};
}

std::vector<ShardPiece> piecesOf(const ParameterShards& parameter, const std::string& tensor, const std::string& file,
                                 int ranks, int rank) {
  const Shape& shape = parameter.type.shape;
  if (parameter.placement.isReplicatedOn(ranks) || ranks == 1) return {{tensor, file}};
  std::vector<ShardPiece> pieces;
  for (const rules::Range& range : parameter.placement.ranges(shape, ranks, rank)) {
    if (range.length == 0) continue;  // a rank that holds only padding
    const int dim = parameter.placement.firstDim();
    pieces.push_back({tensor, file, dim, range.start, range.length});
  }
  return pieces;
}

Result<ParameterShards> planParameter(const PlanRequest& request, const graph::Node& node) {
  const Graph& graph = *request.problem->graph;
  const int ranks = request.problem->context.worldSize;
  const graph::Value& value = graph.value(node.results[0]);
  ParameterShards parameter;
  parameter.name = value.name;
  parameter.type = value.type;
  parameter.storedDtype = value.type.dtype;
  parameter.placement = request.solution->of(node.results[0]);
  const auto local = parameter.placement.localShape(value.type.shape, ranks);
  if (!local || parameter.placement.lastDim() > parameter.placement.firstDim()) {
    return fail(ErrorCode::BadInput, "Parameter {} with shape {} cannot be {} on {} ranks.", value.name,
                graph::toText(value.type.shape), parameter.placement.text(), ranks);
  }
  parameter.localShape = *local;
  std::string tensor = value.name, file;
  if (const auto stored = findStored(request.checkpoint, graph, value.name); stored != request.checkpoint.end()) {
    CLEAVE_TRY_VOID(checkStored(value, stored->first, stored->second));
    parameter.storedDtype = stored->second.type.dtype;
    tensor = stored->first;
    file = stored->second.file;
  }
  for (int rank = 0; rank < ranks; ++rank)
    parameter.piecesByRank.push_back(piecesOf(parameter, tensor, file, ranks, rank));
  return parameter;
}

/// Buffers that old exports store and that the model computes itself.
bool isKnownBuffer(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("embeddings.position_ids");
}

void warnOfUnused(const PlanRequest& request, std::vector<std::string>& warnings) {
  const Graph& graph = *request.problem->graph;
  std::unordered_set<std::string_view> used;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind == graph::NodeKind::Parameter) used.insert(graph.value(node.results[0]).name);
  }
  for (const auto& [parameter, others] : graph.tiedNames) used.insert(others.begin(), others.end());
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, tensor] : request.checkpoint) {
    if (used.contains(name) || isKnownBuffer(name)) continue;
    if (count++ < kNamesInWarning) names += (names.empty() ? "" : ", ") + name;
  }
  if (count == 0) return;
  if (count > kNamesInWarning) names += " and others";
  warnings.push_back(fmt::format("{} of the checkpoint {} not used by this model: {}.",
                                 count == 1 ? "One tensor" : fmt::format("{} tensors", count),
                                 count == 1 ? "is" : "are", names));
}

}  // namespace

Result<ShardMap> shardMap(const PlanRequest& request, std::vector<std::string>& warnings) {
  ShardMap parameters;
  for (const graph::Node& node : request.problem->graph->nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    CLEAVE_TRY(parameters.emplace_back(), planParameter(request, node));
  }
  std::sort(parameters.begin(), parameters.end(),
            [](const ParameterShards& a, const ParameterShards& b) { return a.name < b.name; });
  if (!request.checkpoint.empty()) warnOfUnused(request, warnings);
  return parameters;
}

}  // namespace cleave::plan
