#pragma once
/// A model's `config.json` in typed form: its family's parts with the values of this model, checked against their
/// ranges and against each other.
///
/// Reads both dialects (transformers 4: `rope_theta`, `rope_scaling`, `torch_dtype`; transformers 5: `rope_parameters`,
/// `dtype`, `layer_types`). Keys that the family's configuration class does not know are ignored, as transformers does;
/// those that it knows and Cleave cannot compute are refused by name. No LibTorch in this header. Pure; safe from any
/// thread.
#include "families/family.h"
#include "families/quantization.h"
#include "formats/model_folder.h"
#include "graph/types.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace cleave::families {

enum class RopeKind : std::uint8_t { Default, Linear, Dynamic, Llama3, Yarn, LongRope };

/// Rotary position embedding with its scaling; formulas in rope.cpp. Fields that the kind does not use keep their
/// defaults.
struct RopeConfig {
  RopeKind kind = RopeKind::Default;
  double theta = 10000.0;
  std::int64_t dim = 0;  ///< features of a head that are rotated, even
  double factor = 1.0;
  std::int64_t originalMaxPositions = 0;          ///< Llama3, Yarn, LongRope: positions the model was first trained for
  double lowFrequencyFactor = 1.0;                ///< Llama3
  double highFrequencyFactor = 4.0;               ///< Llama3
  double betaFast = 32.0;                         ///< Yarn
  double betaSlow = 1.0;                          ///< Yarn
  double attentionFactor = 1.0;                   ///< Yarn, LongRope: cos and sin are multiplied by it
  double scoreFactor = 1.0;                       ///< Yarn: latent attention multiplies its scores by it
  bool truncate = true;                           ///< Yarn: whole correction dimensions
  std::vector<double> shortFactors, longFactors;  ///< LongRope: dim / 2 each
};

struct LayerConfig {
  std::int64_t window = 0;  ///< positions a token sees, itself included, before it (to either side where attention
                            ///< is not causal); 0: all
  int rope = -1;            ///< index into ModelConfig::ropes; -1: it does not rotate
  bool isSparse = false;    ///< experts instead of the MLP
};

struct ModelConfig {
  Family family;  ///< a row of the table with the values of this model; names and spans are the row's
  std::string_view className;
  Head head;
  graph::DType dtype = graph::DType::Float32;  ///< of the parameters
  std::vector<LayerConfig> layers;
  std::vector<RopeConfig> ropes;
  std::int64_t padTokenId = -1;  ///< -1: none
  bool hasLoss = true;           ///< false: a loss that Cleave does not compute; lossKind names it
  std::string lossKind;
  std::optional<Quantization> quantization;  ///< of the stored weights: what is computed is the same model
};

/// `where` names the file in errors. BadInput with one sentence: an unknown architecture (names it and lists the known
/// ones), a mistyped key, a value out of range, values that do not fit together.
Result<ModelConfig> readModelConfig(const nlohmann::json& config, const std::string& where = "config.json");
/// Of a folder that has a config.
Result<ModelConfig> readModelConfig(const formats::ModelFolder& folder);

}  // namespace cleave::families
