#pragma once
/// Rotary embeddings in config.json, in both dialects.
#include "families/config_reader.h"
#include "families/parts.h"
#include "families/rope.h"

namespace cleave::families {

/// The values that the scaling of rotary embeddings depends on, besides its own keys.
struct RopeContext {
  std::int64_t headDim = 0;  ///< the features to which `fraction` applies
  std::int64_t maxPositions = 0;
  std::string_view fractionKey = {};  ///< key in the object that describes the rotation; empty: the family rotates all
                                      ///< features
};

/// The base for all layers, then the base for layers with a window if the family has one.
Result<std::vector<RopeConfig>> readRopes(const ConfigReader& config, Rope rope, const RopeContext& context);

}  // namespace cleave::families
