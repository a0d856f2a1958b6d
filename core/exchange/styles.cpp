#include "exchange/styles.h"

#include "base/quantities.h"
#include "exchange/modules.h"
#include "plan/text/block_names.h"

#include <algorithm>
#include <regex>
#include <set>

namespace cleave::exchange {
namespace {

using graph::LayerKind;
using rules::Strategy;

bool isColumn(Strategy strategy) {
  return strategy == Strategy::Column || strategy == Strategy::ColumnGather || strategy == Strategy::GatherColumn;
}
bool isRow(Strategy strategy) { return strategy == Strategy::Row || strategy == Strategy::RowScatter; }

class Styler {
 public:
  Styler(const LayerTable& table, const Vocabulary& vocabulary) : m_table(table), m_vocabulary(vocabulary) {}

  Styled style() && {
    for (const Region& region : m_table.regions) m_styled.isExpressible.push_back(whyNot(region).empty());
    for (const Layer& layer : m_table.layers) m_styled.forms.push_back(formOf(layer));
    settleTied();
    if (m_table.usesSequence && !m_vocabulary.supportsSequence) {
      note({{},
            "sequence parallelism",
            m_vocabulary.library + " is not given a split sequence here",
            "sums are replicated, and norms are computed on all positions"});
    }
    return std::move(m_styled);
  }

 private:
  void note(Note note) { addNote(m_styled.notes, std::move(note)); }

  /// Two layers that share a weight are both split or both replicated.
  void settleTied() {
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) {
      for (std::size_t j = 0; j < m_table.layers.size(); ++j) {
        const Layer &split = m_table.layers[i], &other = m_table.layers[j];
        if (split.weight != other.weight || m_styled.forms[i] == Form::Whole || m_styled.forms[j] != Form::Whole)
          continue;
        std::erase_if(m_styled.notes, [&](const Note& note) { return note.layer == split.name; });  // notes on its
                                                                                                    // split
        m_styled.forms[i] = whole(
            split, fmt::format("it shares its weight with `{}`, which stays replicated", wildcardName(other.name)));
      }
    }
  }

  /// Why the weight cannot be split as in the plan; empty: it can.
  std::string whyNotCut(const Layer& layer) const {
    switch (layer.cut) {
      case Cut::Whole:
      case Cut::Even: break;
      case Cut::Uneven:
        if (!m_vocabulary.supportsUneven)
          return fmt::format("{} splits evenly, but the plan pads it", m_vocabulary.library);
        break;
      case Cut::Blocks:
        if (m_vocabulary.supportsBlocks) break;
        return fmt::format("its weight consists of several blocks ({}), but {} splits it as one",
                           layer.placement.text(), m_vocabulary.library);
      case Cut::Copied:
        if (m_vocabulary.supportsCopied) break;
        return fmt::format("ranks share its parts ({}), but {} gives each rank its own", layer.placement.text(),
                           m_vocabulary.library);
    }
    return {};
  }

  std::string whyNotLayer(const Layer& layer) const {
    if (layer.isPrepared)
      return fmt::format("its weight is computed from `{}`, but {} splits stored weights", wildcardName(layer.weight),
                         m_vocabulary.library);
    if (layer.isTransposed && !m_vocabulary.supportsTransposed)
      return fmt::format("it is a Conv1D with a weight [in, out], but {} splits Linear", m_vocabulary.library);
    if (m_vocabulary.hasOwnModules) return {};
    if (std::string why = whyNotModule(m_table.modelType, layer.name); !why.empty()) return why;
    if (layer.isRouter) return fmt::format("it is a router, which {} does not treat as Linear", m_vocabulary.library);
    if (layer.kind == LayerKind::Linear && layer.shape.size() != 2)
      return fmt::format("its weight has {} matrices, but {} splits one", layer.shape[0], m_vocabulary.library);
    return {};
  }

  std::string whyNot(const Region& region) const {
    if (!region.obstacles.empty()) return region.obstacles.front();
    if (!region.sharedHeads.empty() && !m_vocabulary.supportsCopied) return region.sharedHeads;
    if (region.hasAttention && !m_vocabulary.hasOwnModules) {
      if (std::string why = whyNoHeads(m_table.modelType); !why.empty()) return why;
    }
    if (region.reachesLoss && !m_vocabulary.keepsLossSplit)
      return fmt::format("{} computes the loss from whole logits", m_vocabulary.library);
    if (region.reachesOutput) return "it is the model's output";
    for (const auto* side : {&region.producers, &region.consumers}) {
      for (const std::size_t index : *side) {
        const Layer& layer = m_table.layers[index];
        const bool fits = layer.kind == LayerKind::Linear &&
                          (side == &region.producers ? isColumn(layer.strategy) : isRow(layer.strategy));
        if (!fits) return fmt::format("`{}` is at its border and cannot be split", wildcardName(layer.name));
        if (std::string why = whyNotLayer(layer); !why.empty())
          return fmt::format("`{}`: {}", wildcardName(layer.name), why);
        if (std::string why = whyNotCut(layer); !why.empty())
          return fmt::format("`{}`: {}", wildcardName(layer.name), why);
      }
    }
    if (region.producers.empty()) return "its parts do not come from a layer";
    return {};
  }

  Form whole(const Layer& layer, std::string why) {
    note({layer.name, std::string(rules::toText(layer.strategy)), std::move(why), "it is replicated"});
    return Form::Whole;
  }

  Form formOf(const Layer& layer) {
    if (layer.kind == LayerKind::Experts) return expertsForm(layer);
    if (layer.cut == Cut::Whole || layer.strategy == Strategy::Replicated) return Form::Whole;
    if (std::string why = whyNotLayer(layer); !why.empty()) return whole(layer, std::move(why));
    if (layer.kind == LayerKind::Embedding) return embeddingForm(layer);
    return isRow(layer.strategy) ? rowForm(layer) : columnForm(layer);
  }

  Form embeddingForm(const Layer& layer) {
    if (layer.strategy != Strategy::Vocab && layer.strategy != Strategy::VocabScatter)
      return whole(layer, fmt::format("it is split by features, and the layers after it compute with parts"));
    if (const std::string owner = layer.weight.substr(0, layer.weight.rfind('.'));
        !m_vocabulary.supportsTiedTables && owner != layer.name)
      return whole(layer, fmt::format("it shares its weight with `{}`, and {} ties them after splitting", owner,
                                      m_vocabulary.library));
    if (!m_vocabulary.supportsVocab) return whole(layer, m_vocabulary.library + " does not split embeddings");
    if (std::string why = whyNotCut(layer); !why.empty()) return whole(layer, std::move(why));
    noteUneven(layer);
    return Form::Vocab;
  }

  void noteUneven(const Layer& layer) {
    const bool isPadded = m_vocabulary.padsVocabulary && (layer.isHead || layer.kind == LayerKind::Embedding);
    if (layer.cut == Cut::Uneven && !isPadded) {
      note({layer.name, std::string(rules::toText(layer.strategy)),
            fmt::format("the plan pads it to divide by {} ranks", m_table.ranks),
            m_vocabulary.library + " gives the last ranks less"});
    }
  }

  /// In a region that the library cannot split, a column is gathered at its end and a row split at its start.
  Form columnForm(const Layer& layer) {
    const std::string why = whyNotCut(layer);
    if (why.empty()) noteUneven(layer);
    if (why.empty() && layer.output && m_styled.isExpressible[*layer.output]) return Form::Column;
    const bool gathers = layer.strategy == Strategy::ColumnGather || !layer.output || isEnd(*layer.output);
    if (why.empty() && gathers && (m_vocabulary.supportsGather || layer.output)) return Form::ColumnGather;
    if (!m_vocabulary.supportsGather)
      return whole(layer, !why.empty() ? why : layer.output ? regionText(*layer.output) : "its result is gathered");
    if (!why.empty() || !gathers) {
      note({layer.name, std::string(rules::toText(layer.strategy)), why.empty() ? regionText(*layer.output) : why,
            "its weight is split evenly, and its result gathered at once"});
    }
    return Form::ColumnGather;
  }

  Form rowForm(const Layer& layer) {
    const std::string why = whyNotCut(layer);
    if (why.empty() && layer.input && m_styled.isExpressible[*layer.input]) return Form::Row;
    const std::string reason = !why.empty() ? why : layer.input ? regionText(*layer.input) : "its input is replicated";
    if (!m_vocabulary.supportsGather) return whole(layer, reason);
    note({layer.name, std::string(rules::toText(layer.strategy)), reason,
          "its input is replicated, and each rank takes its part of it"});
    return Form::RowSplitInput;
  }

  /// The plan gathers at the end of the model too. The split loss is a note of each format.
  bool isEnd(std::size_t region) const {
    return m_table.regions[region].reachesOutput || m_table.regions[region].reachesLoss;
  }

  std::string regionText(std::size_t region) const {
    return "the values in between cannot stay split: " + whyNot(m_table.regions[region]);
  }

  Form expertsForm(const Layer& layer) {
    if (layer.cut == Cut::Whole) return Form::Whole;
    if (layer.strategy == Strategy::ByExpert && layer.cut == Cut::Even && m_vocabulary.supportsByExpert)
      return Form::ByExpert;
    if (layer.strategy == Strategy::InExpert && m_vocabulary.supportsInExpert) {
      if (layer.isInTurn)
        return whole(layer, fmt::format("gate and up are interleaved, but {} expects one after the other",
                                        m_vocabulary.library));
      return Form::InExpert;
    }
    return whole(layer, fmt::format("{} has no such split of experts here", m_vocabulary.library));
  }

  const LayerTable& m_table;
  const Vocabulary& m_vocabulary;
  Styled m_styled;
};

}  // namespace

std::string toText(const Note& note) {
  return note.layer.empty() ? fmt::format("{}: {}; {}.", note.strategy, note.why, note.instead)
                            : fmt::format("`{}` ({}): {}; {}.", note.layer, note.strategy, note.why, note.instead);
}

Styled styledLayers(const LayerTable& table, const Vocabulary& vocabulary) { return Styler(table, vocabulary).style(); }

std::string foldedLayerName(const std::string& pattern, const std::vector<int>& numbers, const LayerTable& table) {
  std::set<int> all;
  for (const Layer& layer : table.layers) {
    if (wildcardName(layer.name) == pattern) all.insert(plan::foldIndex(layer.name).second);
  }
  if (numbers.empty() || std::set<int>(numbers.begin(), numbers.end()) == all) return pattern;
  std::string numbered = pattern;
  if (const auto star = numbered.find('*'); star != std::string::npos) numbered[star] = '#';
  return plan::foldedName(numbered, numbers);
}

std::vector<Note> foldedNotes(const std::vector<Note>& notes, const LayerTable& table) {
  std::vector<Note> folded;
  std::vector<std::vector<int>> numbers;
  for (const Note& note : notes) {
    const Note like{wildcardName(note.layer), note.strategy, note.why, note.instead};
    const auto place = static_cast<std::size_t>(std::find(folded.begin(), folded.end(), like) - folded.begin());
    if (place == folded.size()) {
      folded.push_back(like);
      numbers.emplace_back();
    }
    if (const int number = plan::foldIndex(note.layer).second; number >= 0) numbers[place].push_back(number);
  }
  for (std::size_t i = 0; i < folded.size(); ++i) folded[i].layer = foldedLayerName(folded[i].layer, numbers[i], table);
  return folded;
}

std::string whyNotGrouped(const plan::Plan& plan, const Layer& experts) {
  constexpr std::int64_t kRowBytes = 16;  // torch._grouped_mm: "strides should be multiple of 16 bytes"
  const std::int64_t features = experts.localShape[1] / 2;
  const std::int64_t bytes =
      features * graph::itemSize(plan.graph->value(plan.graph->findValue(experts.weight)).type.dtype);
  if (bytes % kRowBytes == 0) return {};
  return fmt::format("a rank's {} of an expert are {} bytes per row, but torch's grouped_mm needs a multiple of {}",
                     counted(features, "feature"), bytes, kRowBytes);
}

void addNote(std::vector<Note>& notes, Note note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

}  // namespace cleave::exchange
