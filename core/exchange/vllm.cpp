#include "base/quantities.h"
#include "exchange/formats.h"
#include "exchange/layer_table.h"
#include "exchange/markdown.h"
#include "exchange/notes.h"
#include "exchange/styles.h"
#include "plan/text/block_names.h"

#include <algorithm>
#include <map>

/// The vLLM layers (vllm/model_executor/layers/{linear,vocab_parallel_embedding}.py, fused_moe) with which a model
/// would be written to be split as in the plan, and the parts of the plan they cannot express. It is a report, because
/// a vLLM model is Python code.

namespace cleave::exchange {
namespace {

using graph::LayerKind;

constexpr std::int64_t kVocabPadding = 64;  ///< DEFAULT_VOCAB_PADDING_SIZE

struct Row {
  std::string code;  ///< "RowParallelLinear(64, 64, bias=False)"
  std::vector<std::size_t> layers;
};

std::string_view truth(bool is) { return is ? "True" : "False"; }

class VllmWriter {
 public:
  explicit VllmWriter(const plan::Plan& plan)
      : m_plan(plan),
        m_table(layerTable(plan)),
        m_styled(styledLayers(m_table, {.library = "vLLM",
                                        .supportsTransposed = true,
                                        .supportsUneven = true,
                                        .supportsBlocks = true,
                                        .supportsCopied = true,
                                        .hasOwnModules = true,
                                        .padsVocabulary = true,
                                        .supportsInExpert = true,
                                        .supportsByExpert = true,
                                        .keepsLossSplit = true})),
        m_isSaid(m_table.layers.size()) {}

  Exported write() && {
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) {
      if (!m_isSaid[i]) say(i);
    }
    if (m_table.hasLoss)
      addNote(m_styled.notes, {"loss", m_table.splitsLoss ? "vocab" : "replicated", "vLLM computes no loss",
                               "logits are gathered for sampling"});
    std::string text =
        fmt::format("# {} in vLLM, --tensor-parallel-size {}\n\n| layers | vLLM |\n|---|---|\n",
                    m_plan.model.architecture.empty() ? "A model" : m_plan.model.architecture, m_table.ranks);
    for (const auto& [code, layers] : m_rows) text += fmt::format("| {} | {} |\n", namesOf(layers), inCode(code));
    m_styled.notes = foldedNotes(m_styled.notes, m_table);
    text += "\n## Differences in vLLM\n\n";
    for (const Note& note : m_styled.notes) text += fmt::format("- {}\n", inCell(toText(note)));
    if (m_styled.notes.empty()) text += "None: vLLM's layers split what the plan splits.\n";
    return {std::move(text), sentences(m_styled.notes)};
  }

 private:
  /// Input and output features of the whole weight.
  static std::pair<std::int64_t, std::int64_t> features(const Layer& layer) {
    return layer.isTransposed ? std::pair(layer.shape[0], layer.shape[1]) : std::pair(layer.shape[1], layer.shape[0]);
  }

  /// Layers with equal code share a row.
  void add(const std::vector<std::size_t>& layers, std::string code) {
    std::string patterns;
    for (const std::size_t i : layers) {
      m_isSaid[i] = true;
      patterns += wildcardName(m_table.layers[i].name) + " ";
    }
    const auto [place, isNew] = m_placeOf.try_emplace(patterns + code, m_rows.size());
    if (isNew) m_rows.push_back({std::move(code), {}});
    auto& all = m_rows[place->second].layers;
    all.insert(all.end(), layers.begin(), layers.end());
  }

  std::string namesOf(const std::vector<std::size_t>& layers) const {
    std::vector<std::pair<std::string, std::vector<int>>> patterns;
    for (const std::size_t i : layers) {
      const std::string pattern = wildcardName(m_table.layers[i].name);
      auto found = std::find_if(patterns.begin(), patterns.end(), [&](const auto& p) { return p.first == pattern; });
      if (found == patterns.end()) found = patterns.insert(patterns.end(), {pattern, {}});
      if (const int number = plan::foldIndex(m_table.layers[i].name).second; number >= 0)
        found->second.push_back(number);
    }
    std::string text;
    for (const auto& [pattern, numbers] : patterns)
      text += (text.empty() ? "" : ", ") + inCode(foldedLayerName(pattern, numbers, m_table));
    return text;
  }

  void say(std::size_t index) {
    const Layer& layer = m_table.layers[index];
    const Form form = m_styled.forms[index];
    if (layer.kind == LayerKind::Experts) return writeExperts(index, form);
    if (layer.kind == LayerKind::Embedding) return writeEmbedding(index, form);
    if (layer.shape.size() != 2) return add({index}, "no class: a product of several matrices");
    const auto [in, out] = features(layer);
    if (layer.isHead && form != Form::Whole && isVocabulary(out)) {
      notePadding(layer);
      return add({index}, fmt::format("ParallelLMHead({}, {}, bias={})", out, in, truth(layer.hasBias)));
    }
    switch (form) {
      case Form::Column: return writeColumn(index);
      case Form::ColumnGather:
        return add({index}, fmt::format("ColumnParallelLinear({}, {}, bias={}, gather_output=True)", in, out,
                                        truth(layer.hasBias)));
      case Form::Row:
      case Form::RowSplitInput:
        return add({index}, fmt::format("RowParallelLinear({}, {}, bias={}{})", in, out, truth(layer.hasBias),
                                        form == Form::Row ? "" : ", input_is_parallel=False"));
      case Form::Vocab:
      case Form::InExpert:
      case Form::ByExpert:
      case Form::Whole: break;
    }
    add({index}, fmt::format("ReplicatedLinear({}, {}, bias={})", in, out, truth(layer.hasBias)));
  }

  /// Adjacent columns of one region are one layer: queries, keys and values; gate and up.
  void writeColumn(std::size_t index) {
    const Layer& layer = m_table.layers[index];
    const Region& region = m_table.regions[*layer.output];
    const auto [in, out] = features(layer);
    const std::string block = layer.name.substr(0, layer.name.rfind('.'));
    std::vector<std::size_t> beside;
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) {
      const Layer& other = m_table.layers[i];
      const bool isBeside = other.name.substr(0, other.name.rfind('.')) == block && other.kind == LayerKind::Linear;
      const bool isConsumer = std::find(region.consumers.begin(), region.consumers.end(), i) != region.consumers.end();
      const bool isProducer = other.output == layer.output;
      // Keys and values that ranks share are replicated, but still come before the attention.
      const bool isShared = region.hasAttention && !region.sharedHeads.empty() && !isConsumer && !other.output;
      if (isBeside && (isProducer || isShared)) beside.push_back(i);
    }
    if (region.hasAttention && region.heads.query > 1 && (beside.size() == 3 || layer.cut == Cut::Blocks)) {
      const std::int64_t all = region.heads.query + 2 * region.heads.keyValue;
      const std::int64_t headSize = beside.size() == 3 ? out / region.heads.query : out / all;
      return add(beside, fmt::format("QKVParallelLinear({}, head_size={}, total_num_heads={}, total_num_kv_heads={}, "
                                     "bias={})",
                                     in, headSize, region.heads.query, region.heads.keyValue, truth(layer.hasBias)));
    }
    if (!region.hasAttention && beside.size() == 2) {
      return add(beside, fmt::format("MergedColumnParallelLinear({}, [{}, {}], bias={})", in,
                                     features(m_table.layers[beside[0]]).second,
                                     features(m_table.layers[beside[1]]).second, truth(layer.hasBias)));
    }
    if (layer.cut == Cut::Blocks) {
      const auto blocks = layer.placement.blocksOf(out);
      std::string sizes;
      for (const rules::Block& part : blocks) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", part.size);
      return add({index},
                 fmt::format("MergedColumnParallelLinear({}, [{}], bias={})", in, sizes, truth(layer.hasBias)));
    }
    add({index}, fmt::format("ColumnParallelLinear({}, {}, bias={})", in, out, truth(layer.hasBias)));
  }

  void writeEmbedding(std::size_t index, Form form) {
    const Layer& layer = m_table.layers[index];
    if (form != Form::Vocab)
      return add({index}, fmt::format("torch.nn.Embedding({}, {})", layer.shape[0], layer.shape[1]));
    add({index}, fmt::format("VocabParallelEmbedding({}, {})", layer.shape[0], layer.shape[1]));
    notePadding(layer);
  }

  /// A head that scores words, not classes.
  bool isVocabulary(std::int64_t features) const {
    return std::any_of(m_table.layers.begin(), m_table.layers.end(), [&](const Layer& layer) {
      return layer.kind == LayerKind::Embedding && layer.shape[0] == features;
    });
  }

  void notePadding(const Layer& layer) {
    const std::int64_t padded = (layer.shape[0] + kVocabPadding - 1) / kVocabPadding * kVocabPadding;
    const bool divides = padded % m_table.ranks == 0;
    if (!divides || padded / m_table.ranks != layer.localShape[0]) {
      addNote(m_styled.notes,
              {layer.name, std::string(rules::toText(layer.strategy)),
               fmt::format("the plan has {} rows per rank", layer.localShape[0]),
               fmt::format("vLLM pads the vocabulary to {}, a multiple of {}{}", padded, kVocabPadding,
                           divides ? ""
                                   : fmt::format(", which does not divide by {} ranks, so it rejects the model",
                                                 m_table.ranks))});
    }
  }

  void writeExperts(std::size_t index, Form form) {
    const Layer& layer = m_table.layers[index];
    const std::int64_t features = layer.shape[static_cast<std::size_t>(layer.isInTurn ? 2 : 1)] / 2,
                       hidden = layer.shape[static_cast<std::size_t>(layer.isInTurn ? 1 : 2)];
    add({index}, fmt::format("FusedMoE(num_experts={}, hidden_size={}, intermediate_size={}, reduce_results=True)",
                             layer.shape[0], hidden, features));
    if (form == Form::ByExpert)
      addNote(m_styled.notes, {layer.name, "by-expert", "it is one flag for all experts of a model",
                               "--enable-expert-parallel gives each rank whole experts"});
    if (form == Form::Whole)
      addNote(m_styled.notes,
              {layer.name, "replicated", "FusedMoE always splits", "each rank has a part of every expert"});
  }

  const plan::Plan& m_plan;
  LayerTable m_table;
  Styled m_styled;
  std::vector<bool> m_isSaid;  ///< by layer
  std::vector<Row> m_rows;
  std::map<std::string, std::size_t> m_placeOf;  ///< rows by names and code
};

}  // namespace

Result<Exported> writeVllm(const plan::Plan& plan, const Options&) { return VllmWriter(plan).write(); }

}  // namespace cleave::exchange
