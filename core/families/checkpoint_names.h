#pragma once
/// Maps the names of a checkpoint's tensors to those of the family's modules. Pure; safe from any thread.
#include "families/family.h"

#include <string>
#include <vector>

namespace cleave::families {

/// For each stored name, in order, the name in the model. They differ in two cases. A checkpoint of the bare model
/// lacks the prefix ("h.0.ln_1.weight" instead of "transformer.h.0.ln_1.weight"), or it uses one of the family's
/// `otherNames`. If two tensors would get the same name, the second keeps its own.
std::vector<std::string> modelNames(const Family& family, const std::vector<std::string>& stored);

}  // namespace cleave::families
