#pragma once
/// The families of Transformers that Cleave builds itself, as data: one row per family, composed of parts (parts.h). A
/// new family is a new row here and a fixture (docs/adding.md). No code compares family names.
///
/// The values are those of transformers' configuration and modelling files with the same names.
#include "base/result.h"
#include "families/parts.h"

namespace cleave::families {

class ConfigReader;
struct Family;

/// A class in config.json's `architectures`, and the head of its model.
struct HeadClass {
  std::string_view className;
  Head head;
};

/// The class of the modules at a path in a block or in the model, without the family's prefix.
struct ModuleClass {
  std::string_view path, suffix;
};

/// A part of a tensor's name in some checkpoints, and its counterpart in the family's modules.
struct OtherName {
  std::string_view stored, inModel;
};

/// A key that changes the computation in an unsupported way: only the value `only` is accepted.
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
  FlagKey isBidirectional = kNever;  ///< every token attends to every other; a window of w then reaches w / 2 to either
                                     ///< side
  IntegerKey vocab{"vocab_size", 32000};
  IntegerKey hidden{"hidden_size", 4096};
  IntegerKey layerCount{"num_hidden_layers", 32};
  IntegerKey positions{"max_position_embeddings", 2048};
  FlagKey isTied{"tie_word_embeddings", false};
  std::int64_t padTokenId = -1;  ///< default if the file has no pad_token_id; -1: no padding token
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
  /// For families whose keys choose between parts. Runs before the parts are read.
  Result<void> (*choose)(Family& family, ConfigReader& config) = nullptr;
  std::span<const std::string_view> choosesBy = {};  ///< the keys that `choose` reads, besides those of parts
};

}  // namespace cleave::families
