#pragma once
/// A model's `config.json` in typed form: its family's parts with the values of this model, checked against their
/// ranges and against each other.
///
/// Reads both dialects (transformers 4: `rope_theta`, `rope_scaling`, `torch_dtype`; transformers 5: `rope_parameters`,
/// `dtype`, `layer_types`). Keys that the family's configuration class does not know are ignored, as in transformers.
/// Keys that Cleave does not support give an error with their name. This header does not use LibTorch. Pure; safe from
/// any thread.
#include "families/family.h"
#include "families/quantization.h"
#include "families/rope.h"
#include "formats/model_folder.h"
#include "graph/types.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace cleave::families {

struct LayerConfig {
  std::int64_t window = 0;  ///< positions that a token attends to: itself and those before it (to either side if
                            ///< attention is not causal); 0: all
  int rope = -1;            ///< index into ModelConfig::ropes; -1: no rotation
  bool isSparse = false;    ///< experts instead of the MLP
};

struct ModelConfig {
  Family family;  ///< a row of the table with the values of this model; names and spans point into the row
  std::string_view className;
  Head head;
  graph::DType dtype = graph::DType::Float32;  ///< of the parameters
  std::vector<LayerConfig> layers;
  std::vector<RopeConfig> ropes;
  std::int64_t padTokenId = -1;  ///< -1: no padding token
  bool hasLoss = true;           ///< false: Cleave does not support the loss; lossKind names it
  std::string lossKind;
  std::optional<Quantization> quantization;  ///< of the stored weights; the computation does not change
};

/// `where` is the file's name in errors. BadInput, in one sentence, for an unknown architecture (with the known ones),
/// a key of the wrong type, a value out of range, or values that do not fit together.
Result<ModelConfig> readModelConfig(const nlohmann::json& config, const std::string& where = "config.json");
/// Reads the config of a model folder.
Result<ModelConfig> readModelConfig(const formats::ModelFolder& folder);

}  // namespace cleave::families
