#include "families/packed_weights.h"

#include "graph/layers.h"
#include "graph/verify.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace cleave::families {
namespace {

using graph::Graph;
using graph::LayerKind;
using graph::LayerShape;
using graph::ValueId;

constexpr std::string_view kWeight = ".weight";

// Suffixes of a module's name: the weight, its packed forms, and the tensors that belong to it.
constexpr std::string_view kOfModule[] = {".weight",
                                          ".weight_scale",
                                          ".weight_scale_inv",
                                          ".weight_scale_2",
                                          ".weight_zero_point",
                                          ".weight_packed",
                                          ".weight_shape",
                                          ".weight_g_idx",
                                          ".weight_global_scale",
                                          ".weight_format",
                                          ".input_scale",
                                          ".input_zero_point",
                                          ".input_scale_ub",
                                          ".input_global_scale",
                                          ".activation_scale",
                                          ".output_scale",
                                          ".qweight",
                                          ".qzeros",
                                          ".scales",
                                          ".g_idx",
                                          ".SCB",
                                          ".k_scale",
                                          ".v_scale"};
// Suffixes of the name of a parameter that contains all experts.
constexpr std::string_view kOfParameter[] = {"", "_blocks", "_scales", "_scale", "_scale_inv"};

/// The layer that owns a weight.
struct Owner {
  LayerShape layer;
  bool isDown = false;
};

std::unordered_map<std::uint32_t, Owner> ownersOf(const Graph& graph) {
  std::unordered_map<std::uint32_t, Owner> owners;
  for (const auto id : idRange<graph::NodeId>(graph.nodes.size())) {
    if (graph.node(id).kind != graph::NodeKind::Call || !graph::mayBeLayer(graph.opName(graph.node(id)))) continue;
    const auto layer = graph::layerShape(graph, id);
    if (!layer || (layer->kind != LayerKind::Linear && layer->kind != LayerKind::Experts)) continue;
    owners.try_emplace(layer->weight.raw(), Owner{*layer, false});
    if (layer->down.isValid()) owners.try_emplace(layer->down.raw(), Owner{*layer, true});
  }
  return owners;
}

class Packer {
 public:
  Packer(const ModelConfig& config, Graph& graph, formats::WeightSources& tensors)
      : m_config(config), m_graph(graph), m_tensors(tensors), m_owners(ownersOf(graph)) {
    m_inBlocks = std::string(config.family.model);
    m_inBlocks += (m_inBlocks.empty() ? "" : ".") + std::string(config.family.layers) + '.';
  }

  Result<void> pack() {
    for (const graph::Node& node : m_graph.nodes) {
      if (node.kind != graph::NodeKind::Parameter) continue;
      const graph::Value& value = m_graph.value(node.results[0]);
      if (value.type.shape.size() < 2) continue;
      auto bytes = storedBytes(value);
      if (!bytes) bytes = configuredBytes(node.results[0]);
      if (!bytes) continue;
      if (*bytes > graph::mostPackedBytes(value.type)) {
        return fail(ErrorCode::BadInput,
                    "The checkpoint's tensors for {} ({}) have {} bytes, above the limit for any quantization.",
                    value.name, graph::toText(value.type), *bytes);
      }
      m_graph.packedBytes[value.name] = *bytes;
    }
    return {};
  }

 private:
  static std::string moduleOf(const std::string& parameter) {
    return parameter.ends_with(kWeight) ? parameter.substr(0, parameter.size() - kWeight.size()) : parameter;
  }

  /// The weights of each expert, if experts are stored separately. Otherwise the parameter's own name.
  std::vector<std::string> storedNames(const std::string& parameter, std::size_t mostItems) const {
    const auto stacked = m_graph.stackedNames.find(parameter);
    if (stacked == m_graph.stackedNames.end()) return {parameter};
    std::vector<std::string> names;
    for (std::size_t item = 0; item < mostItems; ++item) {
      for (std::size_t part = 0; part < stacked->second.suffixes.size(); ++part)
        names.push_back(stacked->second.of(static_cast<std::int64_t>(item), part));
    }
    return names;
  }

  /// nullopt if the tensor is missing or not packed.
  std::optional<std::int64_t> storedBytes(const graph::Value& parameter) {
    if (m_tensors.empty()) return std::nullopt;
    std::vector<formats::WeightSources::iterator> parts = partsOf(parameter.name);
    if (parts.empty()) {
      const auto items = static_cast<std::size_t>(parameter.type.shape[0]);
      for (const std::string& name : storedNames(parameter.name, items)) {
        const auto more = partsOf(name);
        parts.insert(parts.end(), more.begin(), more.end());
      }
    }
    const auto isPlain = [](const auto& tensor) {
      return graph::isFloatingPoint(tensor->second.type.dtype) && graph::itemSize(tensor->second.type.dtype) >= 2;
    };
    const auto isWeight = [](const auto& tensor) { return tensor->first.ends_with(kWeight); };
    const bool isAsItIs = std::ranges::all_of(
        parts, [&](const auto& tensor) { return isPlain(tensor) && (isWeight(tensor) || parts.size() == 1); });
    if (parts.empty() || isAsItIs) return std::nullopt;
    std::int64_t bytes = 0;
    for (const auto& tensor : parts) {
      bytes += tensor->second.bytes;
      tensor->second.partOf = parameter.name;
    }
    return bytes;
  }

  /// The tensors of one weight.
  std::vector<formats::WeightSources::iterator> partsOf(const std::string& weight) {
    std::vector<formats::WeightSources::iterator> parts;
    const auto take = [&](const std::string& name) {
      if (const auto found = m_tensors.find(name); found != m_tensors.end()) parts.push_back(found);
    };
    if (!weight.ends_with(kWeight)) {
      for (const std::string_view suffix : kOfParameter) take(weight + std::string(suffix));
      return parts;
    }
    const std::string module = moduleOf(weight);
    for (const std::string_view suffix : kOfModule) take(module + std::string(suffix));
    // bitsandbytes: "q_proj.weight.absmax", "q_proj.weight.quant_state.bitsandbytes__nf4", ...
    const std::string below = weight + '.';
    for (auto it = m_tensors.lower_bound(below); it != m_tensors.end() && it->first.starts_with(below); ++it)
      parts.push_back(it);
    return parts;
  }

  std::optional<std::int64_t> configuredBytes(ValueId id) const {
    const std::string& name = m_graph.value(id).name;
    const auto owner = m_owners.find(id.raw());
    const bool isStored = !m_tensors.empty() && m_tensors.contains(name);
    if (owner == m_owners.end() || isStored || m_graph.tiedNames.contains(name) || isRouter(name)) return std::nullopt;
    return owner->second.layer.kind == LayerKind::Linear ? linearBytes(id, owner->second.layer)
                                                         : expertBytes(id, owner->second);
  }

  bool isRouter(const std::string& name) const {
    const std::string_view router = m_config.family.experts.router;
    return m_config.family.experts.rule != SparseRule::Never && name.ends_with("." + std::string(router) + ".weight");
  }

  const PackedForm* formOf(const std::string& weight, bool areExperts) const {
    const bool isInBlock = weight.starts_with(m_inBlocks);
    const auto* head = std::get_if<CausalHead>(&m_config.head);
    const bool isHead = head && moduleOf(weight) == head->name;
    if (isHead && !m_config.quantization->packsHead) return nullptr;
    return m_config.quantization->formOf(moduleOf(weight), isInBlock || isHead, areExperts);
  }

  std::optional<std::int64_t> linearBytes(ValueId id, const LayerShape& layer) const {
    const graph::Shape& shape = m_graph.shapeOf(id);
    const PackedForm* form = formOf(m_graph.value(id).name, false);
    if (!form) return std::nullopt;
    return form->bytes(shape[static_cast<std::size_t>(layer.outAxis)], shape[static_cast<std::size_t>(layer.inAxis)]);
  }

  /// All experts have the same form, so the first one is enough.
  std::optional<std::int64_t> expertBytes(ValueId id, const Owner& owner) const {
    const graph::Shape& shape = m_graph.shapeOf(id);
    const std::string& name = m_graph.value(id).name;
    const bool isTurned = owner.layer.outAxis == 2;  // [experts, in, out]
    const std::int64_t out = shape[isTurned ? 2 : 1], in = shape[isTurned ? 1 : 2];
    const std::vector<std::string> parts = storedNames(name, 1);
    std::int64_t ofOne = 0;
    for (const std::string& part : parts) {
      // If all experts are one parameter, patterns name its module.
      const bool isOne = part.ends_with(kWeight);
      const PackedForm* form = formOf(isOne ? part : part.substr(0, part.rfind('.')), true);
      if (!form) return std::nullopt;
      ofOne += form->bytes(out / static_cast<std::int64_t>(parts.size()), in);
    }
    return shape[0] * ofOne;
  }

  const ModelConfig& m_config;
  Graph& m_graph;
  formats::WeightSources& m_tensors;
  const std::unordered_map<std::uint32_t, Owner> m_owners;
  std::string m_inBlocks;  ///< "model.layers."
};

}  // namespace

Result<void> packWeights(const ModelConfig& config, Graph& graph, formats::WeightSources& tensors) {
  graph.packedBytes.clear();
  if (!config.quantization) return {};
  return Packer(config, graph, tensors).pack();
}

}  // namespace cleave::families
