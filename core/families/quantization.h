#pragma once
/// `quantization_config` of a model's config.json: how its weights are packed, and which of them.
///
/// A quantized model computes as if it were not; only what it takes to hold and to read its weights differs. So this
/// says bytes, and no kernel: Cleave plans such models and does not run them. The methods are those that published
/// models have; formats are those that transformers and the packages behind it write.
///
///     CLEAVE_TRY(const auto quantization, readQuantization(fields));
///     const PackedForm* form = quantization->formOf("model.layers.0.mlp.up_proj");   // null: it is plain
///     form->bytes(11008, 4096);
#include "base/json.h"
#include "families/name_pattern.h"
#include "graph/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::families {

/// What one packed weight [out, in] is stored as: its elements, and for each group of them a scale and perhaps a zero.
struct PackedForm {
  int bits = 8;                   ///< of an element, and of a zero
  std::int64_t groupRows = 1;     ///< outputs that a group spans; 0: all
  std::int64_t groupColumns = 0;  ///< inputs; 0: all
  std::int64_t scaleBytes = 4;
  bool hasZeros = false;
  std::int64_t indexBytes = 0;      ///< for each input: the group that it belongs to
  std::int64_t scalesPerOuter = 0;  ///< scales are quantized themselves: a float32 for so many; 0: they are not
  std::int64_t fixedBytes = 0;      ///< beside these, for each weight

  std::int64_t bytes(std::int64_t out, std::int64_t in) const;
  /// "4 bit, groups of 128", "8 bit, blocks of 128 × 128", "8 bit, a scale for each row".
  std::string text() const;
};

/// Names of modules, as a method writes them.
struct ModulePattern {
  enum class Kind : std::uint8_t {
    Name,         ///< the whole name
    Regex,        ///< a regular expression for the name's beginning
    Transformers  ///< transformers' should_convert_module: a regular expression up to a dot, or the name's end
  };
  Kind kind = Kind::Name;
  std::string text;
  std::optional<NamePattern> regex;
  bool matches(std::string_view module) const;
};

enum class WhichWeights : std::uint8_t {
  Linears,   ///< of linear layers and experts
  InBlocks,  ///< the same, but only inside of the decoder's blocks
  ExpertsOnly
};

struct Quantization {
  struct Group {
    std::vector<ModulePattern> targets;  ///< empty: all linear layers
    PackedForm form;
  };
  std::string method;         ///< "gptq"; of compressed-tensors with its format: "compressed-tensors, float-quantized"
  std::vector<Group> groups;  ///< the first that has a module packs it; at least one
  std::vector<ModulePattern> skipped;
  WhichWeights which = WhichWeights::Linears;
  bool packsHead = false;                       ///< the output layer too; a tied one never
  graph::DType dtype = graph::DType::BFloat16;  ///< of what is plain, where the config does not say it

  /// Of a linear layer or of experts; null: it is stored as it is. `isInBlock`: of a decoder's block.
  const PackedForm* formOf(std::string_view module, bool isInBlock, bool areExperts) const;
  /// "gptq, 4 bit, groups of 128".
  std::string text() const;
};

/// nullopt where the config has none. BadInput for a method whose sizes Cleave does not know, with the known ones, and
/// for values out of range.
Result<std::optional<Quantization>> readQuantization(const JsonObject& config);

}  // namespace cleave::families
