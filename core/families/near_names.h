#pragma once
/// Families with names similar to an unknown one, and the list of known names. Pure; safe from any thread.
#include "families/family.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::families {

/// At most three, nearest first. A `model_type` is near if it is equal, is a prefix ("llama" of "llama4"), or differs
/// in few letters. If no `model_type` is near, class names are compared. Empty texts have no matches.
std::vector<const Family*> nearFamilies(std::string_view modelType, std::string_view className);

/// One line for each class that config.json's `architectures` may contain: "LlamaForCausalLM  llama".
std::string listOfFamilies();

}  // namespace cleave::families
