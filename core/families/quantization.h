#pragma once
/// `quantization_config` of a model's config.json: how its weights are packed, and which of them.
///
/// A quantized model computes the same as the original. Only the memory of its weights and the time to read them
/// differ. So this module provides bytes, not kernels: Cleave plans quantized models but does not run them. The methods
/// are those of published models, and the formats are those of transformers and its packages.
///
///     CLEAVE_TRY(const auto quantization, readQuantization(fields));
///     const PackedForm* form = quantization->formOf("model.layers.0.mlp.up_proj");   // null: not packed
///     form->bytes(11008, 4096);
#include "base/json.h"
#include "graph/types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace cleave::families {

/// The stored form of one packed weight [out, in]: its elements, and for each group of them a scale and possibly a
/// zero.
struct PackedForm {
  int bits = 8;                   ///< of an element and of a zero
  std::int64_t groupRows = 1;     ///< outputs in a group; 0: all
  std::int64_t groupColumns = 0;  ///< inputs in a group; 0: all
  std::int64_t scaleBytes = 4;
  bool hasZeros = false;
  std::int64_t indexBytes = 0;      ///< for each input: the index of its group
  std::int64_t scalesPerOuter = 0;  ///< scales per float32 outer scale, if the scales are quantized too; 0: they are
                                    ///< not
  std::int64_t fixedBytes = 0;      ///< further bytes of each weight

  std::int64_t bytes(std::int64_t out, std::int64_t in) const;
  /// "4 bit, groups of 128", "8 bit, blocks of 128 × 128", "8 bit, a scale for each row".
  std::string text() const;
};

/// Module names in the notation of a method. Regular expressions have the syntax of RE2, which is Python's without
/// lookaround and back references.
struct ModulePattern {
  enum class Kind : std::uint8_t {
    Name,         ///< the full name
    Regex,        ///< a regular expression for a prefix of the name
    Transformers  ///< transformers' should_convert_module: a regular expression up to a dot or the name's end
  };
  Kind kind = Kind::Name;
  std::string text;
  std::shared_ptr<const re2::RE2> regex;  ///< null if kind is Name
  bool matches(std::string_view module) const;
};

enum class WhichWeights : std::uint8_t {
  Linears,   ///< weights of linear layers and experts
  InBlocks,  ///< the same, but only inside the decoder's blocks
  ExpertsOnly
};

struct Quantization {
  struct Group {
    std::vector<ModulePattern> targets;  ///< empty: all linear layers
    PackedForm form;
  };
  std::string method;         ///< "gptq"; compressed-tensors with its format: "compressed-tensors, float-quantized"
  std::vector<Group> groups;  ///< the first group that contains a module defines its form; at least one
  std::vector<ModulePattern> skipped;
  WhichWeights which = WhichWeights::Linears;
  bool packsHead = false;                       ///< also packs the output layer, unless it is tied
  graph::DType dtype = graph::DType::BFloat16;  ///< type of unpacked weights if the config lacks it

  /// The form of a linear layer or of experts; null if it is not packed. `isInBlock`: inside a decoder block.
  const PackedForm* formOf(std::string_view module, bool isInBlock, bool areExperts) const;
  /// "gptq, 4 bit, groups of 128".
  std::string text() const;
};

/// nullopt if the config has no quantization. BadInput for an unknown method, with the known ones, and for values out
/// of range.
Result<std::optional<Quantization>> readQuantization(const JsonObject& config);

}  // namespace cleave::families
