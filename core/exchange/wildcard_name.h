#pragma once
#include <string>

namespace cleave::exchange {

/// The pattern that transformers and PyTorch match: "model.layers.*.mlp.up_proj" for "model.layers.3.mlp.up_proj".
std::string wildcardName(const std::string& name);

}  // namespace cleave::exchange
