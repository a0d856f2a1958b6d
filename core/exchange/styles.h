#pragma once
/// Maps layers to the styles of a library that hooks modules, and lists what of a plan the library cannot express.
///
/// A `Vocabulary` lists the forms that a library supports. An unsupported form becomes the nearest supported form with
/// the same numbers (a result gathered at once, an input split at the layer, a replicated layer), with a `Note`. So an
/// exported plan always computes what the model computes, and the notes say where it is split less than in the plan.
///
///     const Styled styled = styledLayers(table, vocabulary);
///     styled.forms[1];   // Form::Column
///     styled.notes;      // {{"model.layers.*.self_attn.k_proj", "column", "1 KV head ...", "its result is gathered"}}
#include "exchange/layer_table.h"
#include "exchange/wildcard_name.h"

#include <string>
#include <vector>

namespace cleave::exchange {

enum class Form : std::uint8_t {
  Whole,
  Column,         ///< replicated input, split output
  ColumnGather,   ///< replicated input, split output gathered at once
  Row,            ///< split input, partial sums added up
  RowSplitInput,  ///< replicated input, of which each rank takes its part
  Vocab,          ///< embedding split by rows; partial results are added up
  InExpert,       ///< a part of each expert
  ByExpert,       ///< some of the experts, each whole
};

/// A difference between a plan and a library, for one layer or equal layers.
struct Note {
  std::string layer;     ///< "model.layers.0.self_attn.k_proj"; empty: the whole plan
  std::string strategy;  ///< "column"
  std::string why;       ///< a clause
  std::string instead;   ///< what the library does instead, a clause
  bool operator==(const Note&) const = default;
};
std::string toText(const Note& note);  ///< one sentence

struct Vocabulary {
  std::string library;              ///< "transformers", the start of a clause
  bool supportsTransposed = false;  ///< layers with a weight [in, out]
  bool supportsUneven = false;      ///< parts of different sizes
  bool supportsBlocks = false;      ///< weights of several blocks
  bool supportsCopied = false;      ///< KV heads shared by ranks
  bool hasOwnModules = false;       ///< it computes with its own modules, not with transformers'
  bool supportsGather = true;       ///< ColumnGather, RowSplitInput
  bool supportsVocab = true;        ///< Vocab
  bool padsVocabulary = false;      ///< by itself; the writer notes it
  bool supportsTiedTables = true;   ///< an embedding that shares its weight with another module
  bool supportsSequence = false;    ///< layers that read or write parts of the sequence
  bool supportsInExpert = false, supportsByExpert = false;
  bool keepsLossSplit = false;  ///< logits may stay split up to the loss
};

struct Styled {
  std::vector<Form> forms;          ///< by layer
  std::vector<bool> isExpressible;  ///< by region: its values are split, as in the plan
  std::vector<Note> notes;          ///< equal notes once
};
Styled styledLayers(const LayerTable& table, const Vocabulary& vocabulary);

/// A clause if PyTorch's grouped product, which transformers uses for experts, cannot read a rank's part of them;
/// empty: it can.
std::string whyNotGrouped(const plan::Plan& plan, const Layer& experts);
inline constexpr std::string_view kInsteadOfGrouped = "load it with experts_implementation=\"eager\"";

/// Adds the note unless it is there already.
void addNote(std::vector<Note>& notes, Note note);
/// Notes that differ only in the layer's number become one, with the name of `foldedLayerName`.
std::vector<Note> foldedNotes(const std::vector<Note>& notes, const LayerTable& table);

/// "model.layers.*.mlp.up_proj" if `numbers` are all layers that the pattern covers, else
/// "model.layers.{0-3,5}.mlp.up_proj".
std::string foldedLayerName(const std::string& pattern, const std::vector<int>& numbers, const LayerTable& table);

}  // namespace cleave::exchange
