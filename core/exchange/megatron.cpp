#include "base/quantities.h"
#include "exchange/formats.h"
#include "exchange/layer_table.h"
#include "exchange/notes.h"
#include "exchange/styles.h"

#include <algorithm>

/// Flags of Megatron-LM (megatron/training/arguments.py, core 0.13) for the split and for the sizes it depends on.
/// Megatron's modules decide what is split; notes list the differences from the plan.

namespace cleave::exchange {
namespace {

using graph::LayerKind;

class MegatronWriter {
 public:
  explicit MegatronWriter(const plan::Plan& plan)
      : m_table(layerTable(plan)),
        m_styled(styledLayers(m_table, {.library = "Megatron",
                                        .supportsTransposed = true,
                                        .supportsUneven = true,
                                        .supportsBlocks = true,
                                        .supportsCopied = true,
                                        .hasOwnModules = true,
                                        .supportsGather = true,
                                        .supportsInExpert = true,
                                        .supportsByExpert = true,
                                        .keepsLossSplit = true})) {
    // Megatron needs its own notes, which follow below.
    m_styled.notes.clear();
  }

  Exported write() && {
    flag("--tensor-model-parallel-size", m_table.ranks);
    if (m_table.usesSequence) m_flags.emplace_back("--sequence-parallel");
    writeHeads();
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) writeLayer(m_table.layers[i], m_styled.forms[i]);
    writeTiedFlag();
    if (m_table.hasLoss && !m_table.splitsLoss)
      note({"loss", "replicated", "Megatron computes the loss from split logits", "it is split over the vocabulary"});
    m_styled.notes = foldedNotes(m_styled.notes, m_table);
    std::string text;
    for (const Note& note : m_styled.notes) text += fmt::format("# {}\n", toText(note));
    for (const std::string& flag : m_flags) text += flag + "\n";
    return {std::move(text), sentences(m_styled.notes)};
  }

 private:
  void flag(std::string_view name, std::int64_t value) { m_flags.push_back(fmt::format("{} {}", name, value)); }
  void note(Note note) { addNote(m_styled.notes, std::move(note)); }
  void writeHeads() {
    const auto attention = std::find_if(m_table.regions.begin(), m_table.regions.end(), [](const Region& region) {
      return region.hasAttention && region.heads.query > 1;
    });
    if (attention == m_table.regions.end()) return;
    flag("--num-attention-heads", attention->heads.query);
    if (attention->heads.keyValue == attention->heads.query) return;
    m_flags.emplace_back("--group-query-attention");
    flag("--num-query-groups", attention->heads.keyValue);
    if (attention->heads.keyValue < m_table.ranks)
      note({{},
            "KV heads",
            fmt::format("{} heads for {} ranks", attention->heads.keyValue, m_table.ranks),
            "Megatron gives each rank the group that it needs, as in the plan"});
  }

  void writeLayer(const Layer& layer, Form form) {
    const std::string name = layer.name, strategy(rules::toText(layer.strategy));
    if (layer.kind == LayerKind::Experts) return writeExperts(layer, form);
    if (layer.kind == LayerKind::Embedding) return writeEmbedding(layer, form);
    const bool isSplit = form == Form::Column || form == Form::Row || layer.isHead;
    if (layer.isRouter) {
      if (form != Form::Whole) note({name, strategy, "Megatron's router is replicated", "it is replicated"});
    } else if (!isSplit) {
      note({name, strategy, "no flag sets the split of a single layer",
            "Megatron splits it like the other layers of its "
            "kind"});
    } else if (layer.isHead && layer.strategy == rules::Strategy::Replicated) {
      note({name, strategy, "no flag keeps the output layer replicated", "Megatron splits it over the vocabulary"});
    }
  }

  void writeEmbedding(const Layer& layer, Form form) {
    const std::string name = layer.name, strategy(rules::toText(layer.strategy));
    if (m_hasWords) {  // positions, token types
      if (form != Form::Whole) note({name, strategy, "Megatron splits only the word embedding", "it is replicated"});
      return;
    }
    m_hasWords = true;
    if (form == Form::Whole)
      note({name, strategy, "no flag keeps the embedding replicated", "Megatron splits it over the vocabulary"});
    const std::int64_t padded =
        layer.localShape.empty() || form == Form::Whole ? layer.shape[0] : layer.localShape[0] * m_table.ranks;
    // Megatron pads to a multiple of this number times the ranks.
    flag("--make-vocab-size-divisible-by", padded % m_table.ranks == 0 ? padded / m_table.ranks : 1);
    if (layer.cut == Cut::Uneven)
      note({name, strategy, fmt::format("the plan pads {} rows to {}", layer.shape[0], padded),
            "--make-vocab-size-divisible-by pads to the same number"});
  }

  void writeExperts(const Layer& layer, Form form) {
    if (!m_hasExperts) flag("--num-experts", layer.shape[0]);
    const std::string name = layer.name, strategy(rules::toText(layer.strategy));
    if (m_hasExperts) {
      if (form != m_experts)
        note({name, strategy, "flags apply to all expert layers", "it is split like the first of them"});
      return;
    }
    m_hasExperts = true;
    m_experts = form;
    if (form == Form::ByExpert) {
      flag("--expert-model-parallel-size", m_table.ranks);
      flag("--expert-tensor-parallel-size", 1);
      if (!m_table.usesSequence)
        note({name, strategy, "in the plan all ranks compute all tokens and sum the results",
              "Megatron sends tokens to their experts, which requires --sequence-parallel"});
    } else if (form == Form::InExpert) {
      flag("--expert-tensor-parallel-size", m_table.ranks);
    } else {
      flag("--expert-tensor-parallel-size", 1);
      note({name, strategy, "experts are replicated in the plan", "each rank has all experts"});
    }
  }

  void writeTiedFlag() {
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (m_table.layers[i].weight == m_table.layers[j].weight) return;
      }
    }
    m_flags.emplace_back("--untie-embeddings-and-output-weights");
  }

  LayerTable m_table;
  Styled m_styled;
  std::vector<std::string> m_flags;
  bool m_hasWords = false, m_hasExperts = false;
  Form m_experts = Form::Whole;
};

}  // namespace

Result<Exported> writeMegatron(const plan::Plan& plan, const Options&) { return MegatronWriter(plan).write(); }

}  // namespace cleave::exchange
