#pragma once
/// The families of Transformers that Cleave builds itself, as data: one row each, composed of parts (parts.h). Adding a
/// family is a row here and a fixture (docs/adding.md); no code asks for a family by its name.
///
/// Facts are those of transformers' configuration and modelling files of the same name.
#include "base/result.h"
#include "families/parts.h"

namespace cleave::families {

class ConfigReader;
struct Family;

/// A class of config.json's `architectures`, and the head that it puts on the model.
struct HeadClass {
  std::string_view className;
  Head head;
};

/// The class of the modules at a path in a block or in the model, without the family's prefix.
struct ModuleClass {
  std::string_view path, suffix;
};

/// A part of a tensor's name as some checkpoints have it, and as the family's modules do.
struct OtherName {
  std::string_view stored, inModel;
};

/// A key that changes what is computed, in a way that Cleave does not have: only `only` opens.
struct RefusedKey {
  std::string_view name;
  bool only = false;
};

struct Family {
  std::string_view modelType;    ///< config.json's `model_type`
  std::string_view classPrefix;  ///< "Llama": names LlamaModel, LlamaDecoderLayer, LlamaAttention, LlamaMLP, ...
  std::span<const HeadClass> heads;
  std::string_view model = "model", layers = "layers", rotary = "rotary_emb", finalNorm = "norm";
  std::string_view layerClass = "DecoderLayer", normClass = "RMSNorm";
  bool isCausal = true;
  FlagKey isBidirectional = kNever;  ///< every token sees every other; a window of w then reaches w / 2 to either side
  IntegerKey vocab{"vocab_size", 32000};
  IntegerKey hidden{"hidden_size", 4096};
  IntegerKey layerCount{"num_hidden_layers", 32};
  IntegerKey positions{"max_position_embeddings", 2048};
  FlagKey isTied{"tie_word_embeddings", false};
  std::int64_t padTokenId = -1;  ///< where the file has no pad_token_id; -1: none
  Norm norm = RmsNorm{};
  Embeddings embeddings = {};
  Position position = Rope{};
  Attention attention = SelfAttention{};
  Mlp mlp = {};
  Experts experts = {};
  Block block = PreNorm{};
  Dropouts dropouts = {};
  std::span<const ModuleClass> classes = {};
  std::span<const OtherName> otherNames = {};
  std::span<const RefusedKey> refused = {};
  /// For families whose keys choose between parts: called before the parts are read.
  Result<void> (*choose)(Family& family, ConfigReader& config) = nullptr;
  std::span<const std::string_view> choosesBy = {};  ///< the keys that it reads beside those of parts
};

/// In the order in which they were added.
std::span<const Family* const> families();
/// Null when no row has it.
const Family* findFamily(std::string_view modelType);

struct KnownClass {
  const Family* family = nullptr;
  const HeadClass* head = nullptr;
};
/// Of a name in `architectures`; nulls when no row has it.
KnownClass findClass(std::string_view className);

}  // namespace cleave::families
