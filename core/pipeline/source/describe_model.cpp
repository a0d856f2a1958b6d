#include "pipeline/source/describe_model.h"

#include "base/quantities.h"
#include "families/known_keys.h"
#include "families/model_config.h"
#include "formats/exported_sizes.h"
#include "program/rank_program.h"

#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

using families::ModelConfig;
using graph::Graph;

bool isBelow(std::string_view path, std::string_view module) {
  return !module.empty() && path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

/// Finds the kind of module of a parameter by the names of its family's parts.
class Modules {
 public:
  explicit Modules(const ModelConfig& config) : m_family(config.family), m_head(headOf(config.head)) {
    m_model = std::string(m_family.model);
    m_blocks = (m_model.empty() ? "" : m_model + '.') + std::string(m_family.layers) + '.';
  }

  std::string_view kindOf(const std::string& name, std::string_view className) const {
    if (className.find("Norm") != std::string_view::npos) return "norms";
    if (!name.starts_with(m_blocks)) {
      const bool isHead = !isBelow(name, m_model) ||
                          std::ranges::any_of(m_head, [&](std::string_view path) { return isBelow(name, path); });
      return isHead ? "head" : "embeddings";
    }
    const std::size_t afterIndex = name.find('.', m_blocks.size());
    const std::string_view inBlock = std::string_view(name).substr(afterIndex + 1);
    if (isOfAttention(inBlock)) return "attention";
    const families::Experts& experts = m_family.experts;
    if (experts.rule != families::SparseRule::Never && isBelow(inBlock, experts.name)) {
      if (isBelow(inBlock, std::string(experts.name) + ".experts")) return "experts";
      if (isBelow(inBlock, experts.router)) return "routers";
    }
    return "MLP";
  }

 private:
  static std::vector<std::string_view> headOf(const families::Head& head) {
    if (const auto* causal = std::get_if<families::CausalHead>(&head)) return {causal->name};
    if (const auto* masked = std::get_if<families::MaskedHead>(&head)) return {masked->dense, masked->decoder};
    const auto& classifier = std::get<families::ClassifierHead>(head);
    return {classifier.dense, classifier.output};
  }

  bool isOfAttention(std::string_view inBlock) const {
    if (const auto* own = std::get_if<families::SelfAttention>(&m_family.attention)) {
      if (isBelow(inBlock, own->name) || isBelow(inBlock, own->output)) return true;
      const auto* separate = std::get_if<families::SeparateQkv>(&own->qkv);
      return separate && (isBelow(inBlock, separate->query) || isBelow(inBlock, separate->key) ||
                          isBelow(inBlock, separate->value));
    }
    return isBelow(inBlock, std::get<families::LatentAttention>(m_family.attention).name);
  }

  const families::Family& m_family;
  const std::vector<std::string_view> m_head;
  std::string m_model, m_blocks;
};

/// Adds to the entry of a kind, and makes the entry if it is new.
void addTo(std::vector<ParameterCount>& counts, std::string_view kind, std::int64_t elements, std::int64_t bytes) {
  auto found = std::ranges::find(counts, kind, &ParameterCount::kind);
  if (found == counts.end()) found = counts.insert(found, ParameterCount{std::string(kind)});
  ++found->tensors;
  found->elements += elements;
  found->bytes += bytes;
}

/// The dtype of a parameter's tensor in the checkpoint, or of its first part; nullopt: the checkpoint lacks it.
std::optional<graph::DType> storedDtype(const Model& model, const std::string& name) {
  const auto find = [&](const std::string& stored) -> std::optional<graph::DType> {
    const auto found = model.folder.tensors.find(stored);
    return found == model.folder.tensors.end() ? std::nullopt : std::optional(found->second.type.dtype);
  };
  if (const auto own = find(name)) return own;
  if (const auto tied = model.aten->tiedNames.find(name); tied != model.aten->tiedNames.end()) {
    for (const std::string& other : tied->second) {
      if (const auto dtype = find(other)) return dtype;
    }
  }
  const auto stacked = model.aten->stackedNames.find(name);
  return stacked == model.aten->stackedNames.end() ? std::nullopt : find(stacked->second.of(0, 0));
}

/// `kindOf(name, class of its module)` returns the kind of a parameter.
template <class KindOf>
void countParameters(const Model& model, const KindOf& kindOf, ModelDescription& made) {
  const Graph& graph = *model.aten;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    const graph::Value& value = graph.value(node.results[0]);
    const std::int64_t elements = graph::elementCount(value.type.shape);
    const bool isPacked = graph.packedBytes.contains(value.name);
    const graph::DType dtype = storedDtype(model, value.name).value_or(value.type.dtype);
    const std::int64_t bytes = isPacked ? graph.heldBytes(node.results[0]) : elements * graph::itemSize(dtype);
    addTo(made.byModule, kindOf(value.name, graph.scope(node.scope).className), elements, bytes);
    addTo(made.byDtype, isPacked ? std::string_view(made.info.quantization) : graph::toText(dtype), elements, bytes);
  }
  std::erase_if(made.byModule, [](const ParameterCount& count) { return count.tensors == 0; });
}

std::string taskOf(const ModelConfig& config) {
  if (std::holds_alternative<families::MaskedHead>(config.head)) return "masked language model";
  if (const auto* classifier = std::get_if<families::ClassifierHead>(&config.head))
    return fmt::format("sequence classifier, {} labels", classifier->labels.value);
  return config.family.isCausal ? "causal language model" : "bidirectional language model";
}

class Sizes {
 public:
  explicit Sizes(const ModelConfig& config) : m_config(config) {}

  std::vector<std::pair<std::string, std::string>> list() {
    const families::Family& family = m_config.family;
    add("layers", family.layerCount.value);
    add("hidden size", family.hidden.value);
    if (const auto* own = std::get_if<families::SelfAttention>(&family.attention)) {
      add("heads", own->heads.value);
      add("KV heads", own->keyValueHeads.value);
      add("head size", own->headDim.value);
    } else {
      latent(std::get<families::LatentAttention>(family.attention));
    }
    add("MLP size", family.mlp.size.value);
    if (family.experts.rule != families::SparseRule::Never) experts(family.experts);
    add("vocabulary", family.vocab.value);
    add("positions", family.positions.value);
    windows();
    return std::move(m_list);
  }

 private:
  void add(std::string name, std::int64_t size) { m_list.emplace_back(std::move(name), std::to_string(size)); }

  void latent(const families::LatentAttention& attention) {
    add("heads", attention.heads.value);
    add("latent keys", attention.keyValueRank.value);
    m_list.emplace_back("head size", fmt::format("{} + {} rotated, values {}", attention.plainDim.value,
                                                 attention.rotatedDim.value, attention.valueDim.value));
  }

  void experts(const families::Experts& experts) {
    const auto sparse = std::ranges::count_if(m_config.layers, &families::LayerConfig::isSparse);
    const std::string where = sparse == std::ssize(m_config.layers) ? "" : fmt::format(", in {} layers", sparse);
    m_list.emplace_back("experts", fmt::format("{} of {} features, {} per token{}", experts.count.value,
                                               experts.size.value, experts.perToken.value, where));
  }

  void windows() {
    std::map<std::int64_t, int> layers;
    for (const families::LayerConfig& layer : m_config.layers) {
      if (layer.window != 0) ++layers[layer.window];
    }
    for (const auto& [window, count] : layers)
      m_list.emplace_back("window", fmt::format("{} tokens in {} layers", window, count));
  }

  const ModelConfig& m_config;
  std::vector<std::pair<std::string, std::string>> m_list;
};

std::vector<std::pair<std::string, std::string>> inputsOf(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> inputs{{"input_ids", "[batch, sequence]"},
                                                          {"attention_mask", "[batch, sequence], optional"}};
  if (!config.family.embeddings.tokenTypes.empty())
    inputs.emplace_back("token_type_ids", "[batch, sequence], optional");
  const bool isClassifier = std::holds_alternative<families::ClassifierHead>(config.head);
  if (config.hasLoss)
    inputs.emplace_back("labels", isClassifier ? "[batch], for the loss" : "[batch, sequence], for the loss");
  return inputs;
}

std::string generates(const Model& model, const ModelConfig& config) {
  if (!config.family.isCausal) return "no: each token attends to all tokens";
  if (std::holds_alternative<families::ClassifierHead>(config.head)) return "no: its head is a classifier";
  return model.info.quantization.empty() ? "plan and run with KV cache (cleave-cli generate)"
                                         : "plan only, with KV cache: the weights are packed";
}

std::vector<std::pair<std::string, std::string>> supportOf(const Model& model, const ModelConfig& config) {
  const std::string noLoss = fmt::format("no: Cleave does not compute the loss of {}", config.lossKind);
  std::string run = "yes";
  if (!model.info.quantization.empty()) {
    run = "no: the weights are packed. Save the model after model.dequantize() in transformers, and run that folder";
  } else if (!model.info.hasWeights) {
    run = "only with random parameters (--skip-weights): there are no weights";
  }
  return {{"plan", "yes"},
          {"run", run},
          {"loss", config.hasLoss ? "yes" : noLoss},
          {"training", !config.hasLoss                   ? noLoss
                       : model.info.quantization.empty() ? "plan (--train) and run (cleave-cli train)"
                                                         : "plan only (--train): the weights are packed"},
          {"generation", generates(model, config)}};
}

/// "from 2 to 64", "2 or more"
std::string rangeOf(const formats::ExportedSymbol& symbol) {
  return symbol.most ? fmt::format("from {} to {}", symbol.least, *symbol.most)
                     : fmt::format("{} or more", symbol.least);
}

/// Describes an exported program by its archive, because it has no config.
void describeExported(const Model& model, ModelDescription& made) {
  const formats::ExportedProgram& program = *model.exported;
  made.task = "exported program";
  made.sizes.emplace_back(
      "exported by", fmt::format("torch {}, {}", program.torchVersion, counted(std::ssize(program.nodes), "call")));
  for (const auto& [symbol, size] : model.info.input.sizes) {
    made.sizes.emplace_back(fmt::format("size {}", symbol),
                            fmt::format("{}, {}", size, rangeOf(program.symbols.at(symbol))));
  }
  const auto ofClass = [](const std::string& /*name*/, const std::string& className) {
    return className.empty() ? std::string_view("class unknown") : std::string_view(className);
  };
  countParameters(model, ofClass, made);
  made.inputs.emplace_back("arguments", formats::inputsInWords(program, model.info.input.sizes));
  made.supported.emplace_back("plan", "yes");
  made.supported.emplace_back("run", program.whyWithoutWeights.empty()
                                         ? "yes"
                                         : fmt::format("only with --weights: {}", program.whyWithoutWeights));
}

void describeFamily(const Model& model, const ModelConfig& config, ModelDescription& made) {
  made.task = taskOf(config);
  made.sizes = Sizes(config).list();
  for (const std::string_view kind : {"embeddings", "attention", "MLP", "experts", "routers", "norms", "head"})
    made.byModule.push_back({std::string(kind)});
  const Modules modules(config);
  const auto kindOf = [&](const std::string& name, const std::string& className) {
    return modules.kindOf(name, className);
  };
  countParameters(model, kindOf, made);
  made.inputs = inputsOf(config);
  made.supported = supportOf(model, config);
  made.ignoredKeys = families::ignoredKeys(config.family, *model.folder.config);
}

}  // namespace

ParameterCount ModelDescription::all() const {
  ParameterCount sum;
  for (const ParameterCount& count : byModule) {
    sum.tensors += count.tensors;
    sum.elements += count.elements;
    sum.bytes += count.bytes;
  }
  return sum;
}

std::size_t countOperators(const graph::Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count(graph.nodes, graph::NodeKind::Call, &graph::Node::kind));
}

Result<std::string> ignoredKeysText(const Model& model) {
  if (!model.folder.config) return std::string();
  CLEAVE_TRY(const ModelConfig config, families::readModelConfig(model.folder));
  const auto keys = families::ignoredKeys(config.family, *model.folder.config);
  if (keys.empty()) return std::string();
  return fmt::format("config.json has {}, which {} models do not read.", fmt::join(keys, ", "),
                     config.family.modelType);
}

Result<ModelDescription> describeModel(const Model& model) {
  ModelDescription made;
  made.info = model.info;
  if (model.exported) {
    describeExported(model, made);
  } else if (model.folder.config) {
    CLEAVE_TRY(const ModelConfig config, families::readModelConfig(model.folder));
    describeFamily(model, config, made);
  } else {
    return fail(ErrorCode::BadInput, "Only the graph is open, not its model. Open the model's folder.");
  }
  std::map<std::string, std::int64_t> files;
  for (const auto& [name, tensor] : model.folder.tensors) files[tensor.file] += tensor.bytes;
  made.files.assign(files.begin(), files.end());
  for (const auto& [parameter, others] : model.aten->tiedNames) {
    for (const std::string& other : others) made.tied.emplace_back(other, parameter);
  }
  std::ranges::sort(made.tied);
  made.capturedOperators = countOperators(*model.captured);
  made.atenOperators = countOperators(*model.aten);
  return made;
}

}  // namespace cleave::pipeline
