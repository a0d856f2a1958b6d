#pragma once
/// Rotary embeddings in config.json, in both dialects.
#include "families/config_reader.h"
#include "families/model_config.h"

namespace cleave::families {

/// What the scaling of a model's rotary embeddings depends on beside their own keys.
struct RopeContext {
  std::int64_t headDim = 0;  ///< features that `fraction` is a part of
  std::int64_t maxPositions = 0;
  std::string_view fractionKey = {};  ///< of the object that describes the rotation; empty: the family rotates all
};

/// The base for all layers, then, where the family has one, that of layers with a window.
Result<std::vector<RopeConfig>> readRopes(const ConfigReader& config, Rope rope, const RopeContext& context);

}  // namespace cleave::families
