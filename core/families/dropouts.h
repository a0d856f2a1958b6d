#pragma once
/// Dropout in a model's config. Pure; safe from any thread.
#include "families/model_config.h"

#include <string>

namespace cleave::families {

/// The dropout probabilities above 0 of a training step, with their keys: "attn_pdrop 0.1, embd_pdrop 0.1". Empty if
/// the model has no dropout.
std::string dropoutText(const ModelConfig& config);

/// Checks a training step with dropout. BadInput for settings in `where` (a config.json) that Cleave does not support.
Result<void> checkDropouts(const ModelConfig& config, const std::string& where);

}  // namespace cleave::families
