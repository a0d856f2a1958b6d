#pragma once
/// What a model's config says of dropout. Pure; safe from any thread.
#include "families/model_config.h"

#include <string>

namespace cleave::families {

/// The probabilities above 0 that a training step of the model has, by their keys: "attn_pdrop 0.1, embd_pdrop 0.1".
/// Empty: it drops nothing.
std::string dropoutsInWords(const ModelConfig& config);

/// BadInput for what `where` (a config.json) asks of a training step with dropout and Cleave does not do.
Result<void> checkDropouts(const ModelConfig& config, const std::string& where);

}  // namespace cleave::families
