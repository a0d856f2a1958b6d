#include "plan/build/missing_weights.h"
#include "plan/build/plan_request.h"
#include "plan/build/steps.h"

#include <algorithm>
#include <unordered_set>

namespace cleave::plan {
namespace {

constexpr std::size_t kNamesInWarning = 4;

/// Finds the tensor of a parameter by its name, or by a name that it is tied to. Returns end() if neither exists.
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

Result<void> checkStored(const ParameterShards& parameter, const std::string& name,
                         const formats::WeightSource& stored) {
  if (!stored.foreignType.empty()) {
    return fail(ErrorCode::BadInput, "{}: tensor {} is stored as {}, which Cleave cannot run. Convert it to {}.",
                stored.file, name, stored.foreignType, graph::toText(parameter.type.dtype));
  }
  const graph::Shape wanted = parameter.storedShape();
  if (stored.type.shape != wanted) {
    return fail(ErrorCode::BadInput,
                "{}: tensor {} has shape {}, but the model needs {}. Use the weights that belong to this config.json.",
                stored.file, name, graph::toText(stored.type.shape), graph::toText(wanted));
  }
  const bool isNarrow = graph::itemSize(stored.type.dtype) < 2;
  if (stored.type.dtype != parameter.type.dtype && (!graph::isFloatingPoint(stored.type.dtype) || isNarrow)) {
    return fail(ErrorCode::BadInput,
                "{}: tensor {} is stored as {}, but the model computes in {}. Quantized weights cannot run: convert "
                "them to bf16.",
                stored.file, name, graph::toText(stored.type.dtype), graph::toText(parameter.type.dtype));
  }
  return {};
}

/// The checkpoint tensors of one parameter: one tensor, or one for each part of each item.
class StoredTensors {
 public:
  StoredTensors(const PlanRequest& request, ParameterShards& parameter)
      : m_checkpoint(request.checkpoint), m_graph(*request.problem->graph), m_parameter(parameter) {}

  /// Finds the tensors, and sets how the parameter is stored.
  Result<void> find() {
    if (const auto stored = findStored(m_checkpoint, m_graph, m_parameter.name); stored != m_checkpoint.end())
      return add(0, stored->first, stored->second);
    const auto stacked = m_graph.stackedNames.find(m_parameter.name);
    if (stacked == m_graph.stackedNames.end()) return {};
    const graph::StackedName& names = stacked->second;
    // A checkpoint with the first of these tensors must have all of them. Missing tensors are reported by name.
    if (!m_checkpoint.contains(names.of(0, 0))) return {};
    m_parameter.stacked = static_cast<int>(names.suffixes.size());
    const std::size_t parts = names.suffixes.size();
    m_tensors.resize(static_cast<std::size_t>(m_parameter.type.shape[0]) * parts);
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
      const std::string name = names.of(static_cast<std::int64_t>(i / parts), i % parts);
      const auto stored = m_checkpoint.find(name);
      if (stored == m_checkpoint.end()) {
        m_tensors[i].name = name;
      } else {
        CLEAVE_TRY_VOID(add(i, name, stored->second));
      }
    }
    return {};
  }

  std::vector<ShardPiece> pieces(int ranks, int rank) const {
    std::vector<ShardPiece> pieces;
    for (const program::StoredRegion& region : storedRegions(m_parameter, ranks, rank)) {
      const Tensor& tensor = m_tensors[static_cast<std::size_t>(region.item * m_parameter.stacked + region.part)];
      pieces.push_back({tensor.name, tensor.file, region.dim, region.start, region.length});
    }
    return pieces;
  }

 private:
  struct Tensor {
    std::string name, file;
  };

  Result<void> add(std::size_t index, const std::string& name, const formats::WeightSource& stored) {
    CLEAVE_TRY_VOID(checkStored(m_parameter, name, stored));
    const bool isFirst = index == 0;
    if (!isFirst && stored.type.dtype != m_parameter.storedDtype) {
      return fail(ErrorCode::BadInput,
                  "{}: tensor {} is stored as {}, but other tensors of {} are stored as {}. Store them in one type.",
                  stored.file, name, graph::toText(stored.type.dtype), m_parameter.name,
                  graph::toText(m_parameter.storedDtype));
    }
    m_parameter.storedDtype = stored.type.dtype;
    m_tensors[index] = {stored.tensor.empty() ? name : stored.tensor, stored.file};
    return {};
  }

  const formats::WeightSources& m_checkpoint;
  const Graph& m_graph;
  ParameterShards& m_parameter;
  std::vector<Tensor> m_tensors{{m_parameter.name, {}}};
};

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
  StoredTensors stored(request, parameter);
  const bool isPacked = graph.packedBytes.contains(value.name);  // stored in tensors that cannot be split
  if (!isPacked) {
    CLEAVE_TRY_VOID(stored.find());
  }
  for (int rank = 0; rank < ranks; ++rank) parameter.piecesByRank.push_back(stored.pieces(ranks, rank));
  return parameter;
}

/// Buffers that old exports store, although the model computes them.
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
  std::unordered_set<std::string> ofItems;
  for (const auto& [parameter, stored] : graph.stackedNames) {
    const std::int64_t items = graph.shapeOf(graph.findValue(parameter))[0];
    for (std::int64_t item = 0; item < items; ++item) {
      for (std::size_t part = 0; part < stored.suffixes.size(); ++part) ofItems.insert(stored.of(item, part));
    }
  }
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, tensor] : request.checkpoint) {
    if (!tensor.partOf.empty() || used.contains(name) || ofItems.contains(name) || isKnownBuffer(name)) continue;
    if (count++ < kNamesInWarning) names += (names.empty() ? "" : ", ") + name;
  }
  if (count == 0) return;
  if (count > kNamesInWarning) names += fmt::format(" and {} more", count - kNamesInWarning);
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
  if (request.checkpoint.empty()) return parameters;
  if (const std::string lacks = missingWeights(parameters, *request.problem->graph); !lacks.empty())
    warnings.push_back(fmt::format("The checkpoint lacks {}. A run needs them.", lacks));
  warnOfUnused(request, warnings);
  return parameters;
}

}  // namespace cleave::plan
