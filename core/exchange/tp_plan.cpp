#include "base/json_writer.h"
#include "exchange/formats.h"
#include "exchange/modules.h"
#include "exchange/notes.h"
#include "exchange/stacks.h"
#include "exchange/styles.h"
#include "plan/text/block_names.h"

#include <algorithm>

// clang-format off
/// transformers' plans: a style for each module, names with `*` for the numbers of layers.
///
///   5   {"transformers": 5, "tp_size": 2, "tp_plan": {...}, "ep_size": 2, "ep_plan": {...}, "notes": [...]}
///       for `DistributedConfig(tp_size=..., tp_plan=...)`. A dictionary is added to the model's own plan, so
///       replicated layers are listed too ("replicate"). ep_size and ep_plan are present only if experts are split
///       by expert.
///   4   {"transformers": 4, "base_model_tp_plan": {...}, "tp_plan": {"lm_head": "colwise_rep"}, "notes": [...]}
///       for `config.base_model_tp_plan` (names start after the base model's prefix) and the class's `_tp_plan`.
///       Modules that are not listed stay replicated.
///
/// Sources: transformers 5.23, distributed/tensor_parallel.py, distributed/mixin.py (_resolve_parallel_plans: keys are
/// compared only with names whose numbers are `*`), distributed/expert_parallel.py; transformers 4.57,
/// integrations/tensor_parallel.py.
// clang-format on

namespace cleave::exchange {
namespace {

struct Generation {
  int number;
  std::string_view columnGather, rowSplitInput, vocab;  ///< empty: this version has no such style
};
constexpr Generation kFour{4, "colwise_rep", "rowwise_rep", ""};
constexpr Generation kFive{5, "colwise_gather_output", "rowwise_split_input", "embedding_rowwise"};

Vocabulary vocabularyOf(const Generation& generation) {
  const bool isFive = generation.number == 5;
  return {.library = fmt::format("transformers {}", generation.number),
          .supportsUneven = isFive,
          .supportsVocab = !generation.vocab.empty(),
          .supportsTiedTables = false,
          .supportsInExpert = isFive,
          .supportsByExpert = isFive};
}

class TpPlanWriter {
 public:
  TpPlanWriter(const plan::Plan& plan, const Generation& generation)
      : m_plan(plan),
        m_table(layerTable(plan)),
        m_generation(generation),
        m_styled(styledLayers(m_table, vocabularyOf(generation))) {}

  Exported write() && {
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) say(m_table.layers[i], m_styled.forms[i]);
    if (m_generation.number == 5) {
      writeNorms();
      writeRest();
    }
    const NamedStyles said = folded(m_said), experts = folded(m_experts);
    if (m_table.splitsLoss) {
      addNote(m_styled.notes,
              {"loss", "vocab", "transformers computes the loss from whole logits", "the head's result is gathered"});
    }
    if (std::string why = whyNoTraining(m_table.modelType); !why.empty())
      addNote(m_styled.notes, {{}, "training", std::move(why), "this is for inference"});
    m_styled.notes = foldedNotes(m_styled.notes, m_table);
    m_json.beginObject();
    m_json.key("transformers").value(m_generation.number);
    m_generation.number == 5 ? writeFive(said, experts) : writeFour(said);
    writeNotes(m_json, m_styled.notes);
    m_json.endObject();
    return {std::move(m_json).take(), sentences(m_styled.notes)};
  }

 private:
  void say(const Layer& layer, Form form) {
    const std::string name = m_generation.number == 5 ? moduleName(m_table.modelType, layer.name) : layer.name;
    if (layer.kind == graph::LayerKind::Experts) return writeExperts(layer, name, form);
    const std::string_view style = styleOf(form);
    if (!style.empty()) m_said.emplace_back(name, style);
  }

  /// Empty: the layer is not listed.
  std::string_view styleOf(Form form) const {
    switch (form) {
      case Form::Column: return "colwise";
      case Form::ColumnGather: return m_generation.columnGather;
      case Form::Row: return "rowwise";
      case Form::RowSplitInput: return m_generation.rowSplitInput;
      case Form::Vocab: return m_generation.vocab;
      case Form::Whole:
      case Form::InExpert:
      case Form::ByExpert: break;
    }
    return m_generation.number == 5 ? "replicate" : "";
  }

  void noteGroupedProducts(const Layer& layer) {
    if (std::string why = whyNotGrouped(m_plan, layer); !why.empty())
      addNote(m_styled.notes,
              {layer.name, std::string(rules::toText(layer.strategy)), std::move(why), std::string(kInsteadOfGrouped)});
  }

  void writeExperts(const Layer& layer, const std::string& name, Form form) {
    if (m_generation.number == 4) return;
    const bool isInside = form == Form::InExpert;
    if (isInside) noteGroupedProducts(layer);
    if (form == Form::ByExpert) {
      m_experts.emplace_back(name + ".gate_up_proj", "grouped_gemm");
      m_experts.emplace_back(name + ".down_proj", "grouped_gemm");
      m_experts.emplace_back(name, "ep_dispatch_experts");
    }
    m_said.emplace_back(name + ".gate_up_proj", isInside ? "packed_colwise" : "replicate");
    m_said.emplace_back(name + ".down_proj", isInside ? "rowwise" : "replicate");
    m_said.emplace_back(name, isInside ? "moe_tp_experts" : "replicate");
  }

  /// Norms of heads: each rank has the gradient of its own heads only.
  void writeNorms() {
    for (std::size_t i = 0; i < m_table.regions.size(); ++i) {
      for (const std::string& module : m_table.regions[i].replicatedModules) {
        writeOnce(module, m_styled.isExpressible[i] ? "replicated_with_grad_allreduce" : "replicate");
      }
    }
  }

  /// Other modules with parameters: transformers' own plan may give them a style that is right only for its own split.
  void writeRest() {
    for (const graph::Node& node : m_plan.graph->nodes) {
      if (node.kind != graph::NodeKind::Parameter) continue;
      const std::string& name = m_plan.graph->value(node.results.front()).name;
      const auto dot = name.rfind('.');
      if (dot == std::string::npos || isBuffer(name)) continue;
      const std::string_view own = std::string_view(name).substr(dot + 1);
      writeOnce(own == "weight" || own == "bias" ? name.substr(0, dot) : name, "replicate");
    }
  }

  void writeOnce(const std::string& checkpointName, std::string_view style) {
    const std::string name = moduleName(m_table.modelType, checkpointName);
    const auto isSaid = std::any_of(m_said.begin(), m_said.end(), [&](const auto& s) { return s.first == name; });
    if (!isSaid) m_said.emplace_back(name, style);
  }

  NamedStyles folded(const NamedStyles& said) {
    FoldedByMost folded = foldedByMost(said);
    for (const auto& [stack, numbers] : folded.others) {
      addNote(m_styled.notes, {stack, "differing layers", "transformers lists the layers of a stack together",
                               fmt::format("{} {} split like most of them", numbers.size() == 1 ? "layer" : "layers",
                                           plan::foldedName("#", numbers) + (numbers.size() == 1 ? " is" : " are"))});
    }
    return std::move(folded.said);
  }

  void writeStyles(std::string_view key, const NamedStyles& said) {
    m_json.key(key).beginObject();
    for (const auto& [name, style] : said) m_json.key(name).value(style);
    m_json.endObject();
  }

  void writeFive(const NamedStyles& said, const NamedStyles& experts) {
    m_json.key("tp_size").value(m_table.ranks);
    writeStyles("tp_plan", said);
    if (experts.empty()) return;
    m_json.key("ep_size").value(m_table.ranks);
    writeStyles("ep_plan", experts);
  }

  /// The base model is the prefix of the layers' names: "model.", "transformer.", "gpt_neox.".
  void writeFour(const NamedStyles& said) {
    std::string prefix;
    for (const Layer& layer : m_table.layers) {
      if (wildcardName(layer.name) != layer.name) {
        prefix = layer.name.substr(0, layer.name.find('.') + 1);
        break;
      }
    }
    NamedStyles base, head;
    for (const auto& [name, style] : said) {
      const bool isBase = !prefix.empty() && name.starts_with(prefix);
      (isBase ? base : head).emplace_back(isBase ? name.substr(prefix.size()) : name, style);
    }
    writeStyles("base_model_tp_plan", base);
    writeStyles("tp_plan", head);
  }

  const plan::Plan& m_plan;
  LayerTable m_table;
  const Generation& m_generation;
  Styled m_styled;
  NamedStyles m_said, m_experts;
  JsonWriter m_json;
};

}  // namespace

Result<Exported> writeTpPlan(const plan::Plan& plan, const Options& options) {
  return TpPlanWriter(plan, options.transformers == 4 ? kFour : kFive).write();
}

}  // namespace cleave::exchange
