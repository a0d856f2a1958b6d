#pragma once
/// Which families an unknown one may have been meant for, and the names that there are. Pure; safe from any thread.
#include "families/family.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::families {

/// At most three, nearest first: whose `model_type` is this one, begins it ("llama4" and llama), or differs in few
/// letters; where there is none, by the class's name. Empty texts are near to nothing.
std::vector<const Family*> nearFamilies(std::string_view modelType, std::string_view className);

/// One line for each class that config.json's `architectures` may name: "LlamaForCausalLM  llama".
std::string listOfFamilies();

}  // namespace cleave::families
