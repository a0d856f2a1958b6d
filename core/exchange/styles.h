#pragma once
/// How a library that hooks modules is told to split a layer, and what of a plan it cannot be told.
///
/// A library has a `Vocabulary`: which forms it knows. What it cannot say of a layer becomes the nearest form that
/// gives the same numbers (a result that is gathered at once, an input that is cut at the layer, a whole layer), with a
/// `Note` that says so. So an exported plan always computes what the model computes; how much of it is split as the
/// plan has it is what notes are about.
///
///     const Styled styled = styledLayers(table, vocabulary);
///     styled.forms[1];   // Form::Column
///     styled.notes;      // {{"model.layers.*.self_attn.k_proj", "column", "1 KV head ...", "its result is gathered"}}
#include "exchange/layer_table.h"

#include <string>
#include <vector>

namespace cleave::exchange {

enum class Form : std::uint8_t {
  Whole,
  Column,         ///< whole in, parts out
  ColumnGather,   ///< whole in, parts that are gathered at once
  Row,            ///< parts in, partial sums that are added up
  RowSplitInput,  ///< whole in, of which each rank takes its part
  Vocab,          ///< of an embedding: rows; partial results that are added up
  InExpert,       ///< of all experts a part each
  ByExpert,       ///< of the experts a part, each whole
};

/// What a plan says and a library does not, for one layer or those like it.
struct Note {
  std::string layer;     ///< "model.layers.0.self_attn.k_proj"; empty: the whole plan
  std::string strategy;  ///< "column"
  std::string why;       ///< a clause
  std::string instead;   ///< what the library will do, a clause
  bool operator==(const Note&) const = default;
};
std::string toText(const Note& note);  ///< one sentence

struct Vocabulary {
  std::string library;          ///< "transformers", to begin a clause
  bool saysTransposed = false;  ///< layers whose weight lies [in, out]
  bool saysUneven = false;      ///< parts that differ in size
  bool saysBlocks = false;      ///< weights that are several behind each other
  bool saysCopied = false;      ///< KV heads that ranks share
  bool hasOwnModules = false;   ///< it computes with modules of its own, not with transformers'
  bool saysGather = true;       ///< ColumnGather, RowSplitInput
  bool saysVocab = true;        ///< Vocab
  bool padsVocabulary = false;  ///< by itself, as a writer says of it
  bool saysTiedTables = true;   ///< an embedding with the weight of another module
  bool saysSequence = false;    ///< layers that read or write parts of the sequence
  bool saysInExpert = false, saysByExpert = false;
  bool keepsLossSplit = false;  ///< logits may stay parts up to the loss
};

struct Styled {
  std::vector<Form> forms;     ///< by layer
  std::vector<bool> isSpoken;  ///< by region: its values are parts, as the plan has them
  std::vector<Note> notes;     ///< equal ones once
};
Styled styledLayers(const LayerTable& table, const Vocabulary& vocabulary);

/// A clause where PyTorch's grouped product, with which transformers computes experts, does not read a rank's part of
/// them; empty: it does.
std::string whyNotGrouped(const plan::Plan& plan, const Layer& experts);
inline constexpr std::string_view kInsteadOfGrouped = "load it with experts_implementation=\"eager\"";

/// Each once.
void addNote(std::vector<Note>& notes, Note note);
/// Those that differ in nothing but the layer's number as one, with the layers' name as `foldedLayerName` has it.
std::vector<Note> foldedNotes(const std::vector<Note>& notes, const LayerTable& table);

/// "model.layers.*.mlp.up_proj" where `numbers` are all layers that the pattern covers, else
/// "model.layers.{0-3,5}.mlp.up_proj".
std::string foldedLayerName(const std::string& pattern, const std::vector<int>& numbers, const LayerTable& table);

/// Names as transformers and PyTorch match them: "model.layers.3.mlp.up_proj" is "model.layers.*.mlp.up_proj".
std::string wildcardName(const std::string& name);

}  // namespace cleave::exchange
